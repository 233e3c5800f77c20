"""All engines: one line for each, in the order in which they are made and shown."""

from collections.abc import Mapping

from trainium_core.engines.ec2 import EC2
from trainium_core.engines.engine import Engine
from trainium_core.engines.hyperpod import HYPERPOD
from trainium_core.engines.sagemaker import SAGEMAKER

_ENGINES = (
    EC2,
    SAGEMAKER,
    HYPERPOD,
)

CLUSTER = EC2
"""The engine whose settings are the plan's own, and whose stack is the cluster."""

ENGINES: Mapping[str, Engine] = {engine.key: engine for engine in _ENGINES}
"""By what trn:stacks calls them."""

STACK_NAMES: Mapping[str, str] = {key: engine.stack_name for key, engine in ENGINES.items()}
"""Names of the stacks by what trn:stacks calls them."""

SERVICE_LOGS = tuple(engine.service_logs for engine in ENGINES.values() if engine.service_logs is not None)
