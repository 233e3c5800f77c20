"""All engines: one line for each, in the order in which they are made and shown."""

from collections.abc import Mapping

from trainium_core.engines.ec2 import EC2
from trainium_core.engines.engine import Engine
from trainium_core.engines.hyperpod import HYPERPOD
from trainium_core.engines.sagemaker import SAGEMAKER
from trainium_core.naming import stack_name

_ENGINES = (
    EC2,
    SAGEMAKER,
    HYPERPOD,
)

CLUSTER = EC2
"""The engine whose settings are the plan's own, and whose stack is the cluster."""

ENGINES: Mapping[str, Engine] = {engine.key: engine for engine in _ENGINES}
"""By what trn:stacks calls them."""

CONSTRUCT_IDS: Mapping[str, str] = {key: engine.construct_id for key, engine in ENGINES.items()}
"""Ids of the stacks in the app, which `cdk` is given, by what trn:stacks calls them."""


def stack_names(cluster_name: str) -> Mapping[str, str]:
    """Names of a cluster's stacks in CloudFormation, by what trn:stacks calls them."""
    return {key: stack_name(construct_id, cluster_name) for key, construct_id in CONSTRUCT_IDS.items()}


SERVICE_LOGS = tuple(engine.service_logs for engine in ENGINES.values() if engine.service_logs is not None)

SERVICE_NODES = tuple(engine.service_nodes for engine in ENGINES.values() if engine.service_nodes is not None)
