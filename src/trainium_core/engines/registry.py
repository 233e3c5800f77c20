"""All engines, in the order of CONSTRUCT_IDS."""

from collections.abc import Mapping

from trainium_core.engines.ec2.engine import EC2
from trainium_core.engines.engine import Engine
from trainium_core.engines.pcs.engine import PCS
from trainium_core.engines.sagemaker.engine import SAGEMAKER
from trainium_core.plan import Plan
from trainium_core.plan.warnings import merged

CLUSTER = EC2
"""The engine of the cluster stack. Its settings have no separate section in the plan."""

ENGINES: Mapping[str, Engine] = {engine.key: engine for engine in (EC2, SAGEMAKER, PCS)}
"""The engines by their key in trn:stacks."""

SERVICE_NODES = tuple(engine.service_nodes for engine in ENGINES.values() if engine.service_nodes is not None)
ENGINES_WITH_NODES = (
    CLUSTER.key,
    *(key for key, engine in ENGINES.items() if engine.service_nodes),
)
"""Engines whose stacks have nodes that are EC2 instances."""


def engines_with_check(name: str) -> frozenset[str]:
    """The keys of the engines whose stacks a check applies to; empty for a check that no engine has."""
    return frozenset(key for key, engine in ENGINES.items() if name in (*engine.checks, *engine.shared_checks))


def engines_of(plan: Plan) -> tuple[Engine, ...]:
    """The engines of trn:stacks, in the order of ENGINES."""
    return tuple(engine for engine in ENGINES.values() if engine.key in plan.stacks)


def plan_warnings(plan: Plan) -> Mapping[str, str]:
    """Warnings by setting: those of the cluster's engine, which every plan gets, and of the plan's other engines."""
    engines = dict.fromkeys((CLUSTER.key, *plan.stacks))
    return merged(warning for key in engines for warning in ENGINES[key].warnings(plan).items())
