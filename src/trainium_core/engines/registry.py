"""All engines, in the order of CONSTRUCT_IDS, and the choice of one for a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from trainium_core.engines.ec2.engine import EC2
from trainium_core.engines.eks.engine import EKS
from trainium_core.engines.engine import Engine
from trainium_core.engines.pcs.engine import PCS
from trainium_core.engines.sagemaker.engine import SAGEMAKER
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.naming import SLURM
from trainium_core.plan import Plan
from trainium_core.plan.settings_by_key import GROUP_OF, SETTINGS, belongs_to_another_engine, setting_value
from trainium_core.plan.warnings import merged

if TYPE_CHECKING:
    from trainium_core.engines.parts import ServiceNodes

CLUSTER = EC2
"""The engine of the cluster stack. Its settings have no separate section in the plan."""

ENGINES: Mapping[str, Engine] = {engine.key: engine for engine in (EC2, SAGEMAKER, PCS, EKS)}
"""The engines by their key in trn:stacks."""

ENGINES_WITH_NODES = tuple(key for key, engine in ENGINES.items() if engine.has_nodes)
"""Engines whose stacks have nodes, the cluster first."""


def service_nodes() -> Sequence[ServiceNodes]:
    """How the nodes of all services are found."""
    return [nodes for engine in ENGINES.values() if (nodes := engine.service_nodes())]


def engines_with_check(name: str) -> frozenset[str]:
    """The keys of the engines whose stacks a check applies to; empty for a check that no engine has."""
    return frozenset(key for key, engine in ENGINES.items() if name in (*engine.checks(), *engine.shared_checks))


def plan_engines(plan: Plan) -> tuple[Engine, ...]:
    """The engines of trn:stacks, in the order of ENGINES."""
    return tuple(engine for engine in ENGINES.values() if engine.key in plan.stacks)


def job_engine_keys(plan: Plan) -> tuple[str, ...]:
    """The keys of the plan's engines, the cluster first."""
    return tuple(sorted(plan.stacks, key=lambda key: key != CLUSTER.key))


def chosen_engine(plan: Plan, on: str | None) -> str:
    """The key of the engine that --on names. Default: the cluster, else the plan's first other engine.

    Args:
        plan: The plan.
        on: The value of --on, if any.

    Raises:
        JobError: The plan does not have the engine.
    """
    keys = job_engine_keys(plan)
    key = PCS.key if on == SLURM else on
    if key is None or key in keys:
        return key or keys[0]
    fix = f"add {key} to trn:stacks, and run `trn deploy`"
    raise JobError([JobProblem(key="--on", got=on, allowed=", ".join(keys), fix=fix)])


def plan_warnings(plan: Plan) -> Mapping[str, str]:
    """Warnings by setting, of all stacks of the plan."""
    return merged(warning for key in plan.stacks for warning in stack_warnings(plan, key).items())


def stack_warnings(plan: Plan, engine: str) -> Mapping[str, str]:
    """Warnings by setting, of the stack of one engine of the plan, by its key."""
    return merged([*ENGINES[engine].warnings(plan).items(), *_unused_settings(plan)])


_GROUPS_OF_JOBS = ("file-systems", "jobs")
"""The groups of settings whose effect is expected wherever a job runs."""


def _unused_settings(plan: Plan) -> Iterator[tuple[str, str]]:
    """A warning for each setting that no stack of the plan uses; for one of jobs, that a stack does not use."""
    engines = plan_engines(plan)
    for key, setting in SETTINGS.items():
        if setting_value(plan, key) == setting.default:
            continue
        fixes = {engine: fix for engine in engines if (fix := _unused_fix(engine, key, plan))}
        if len(fixes) == len(engines):
            yield key, f"{_does_not_use(fixes)} it: {'; '.join(dict.fromkeys(fixes.values()))}"
        elif fixes and (GROUP_OF[key] in _GROUPS_OF_JOBS or key == "job_notices"):
            yield key, f"{_does_not_use(fixes)} it"


def _unused_fix(engine: Engine, key: str, plan: Plan) -> str | None:
    """The fix for a setting that the stack of an engine does not use; None if it uses the setting."""
    if belongs_to_another_engine(key, engine.key):
        return "remove it"
    return engine.unused_settings(plan).get(key)


def _does_not_use(engines: Iterable[Engine]) -> str:
    stacks = [engine.construct_id for engine in engines]
    return f"{' and '.join(stacks)} {'does' if len(stacks) == 1 else 'do'} not use"
