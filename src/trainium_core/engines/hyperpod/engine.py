"""SageMaker HyperPod: a cluster whose nodes SageMaker watches and replaces, orchestrated by Slurm or EKS."""

from trainium_core.engines.engine import Engine, ServiceLogs, ServiceNodes
from trainium_core.engines.hyperpod.audited import LISTINGS
from trainium_core.engines.hyperpod.aws_nodes import running_nodes
from trainium_core.engines.hyperpod.costs import cost_items, cost_notes
from trainium_core.engines.hyperpod.quota_check import check_hyperpod
from trainium_core.engines.hyperpod.warnings import hyperpod_warnings

_CLUSTER = "AWS::SageMaker::Cluster"

HYPERPOD = Engine(
    key="hyperpod",
    cost_items=cost_items,
    cost_notes=cost_notes,
    warnings=hyperpod_warnings,
    checks={"hyperpod": check_hyperpod},
    listings=LISTINGS,
    service_logs=ServiceLogs(prefix="/aws/sagemaker/Clusters/", resource_type=_CLUSTER),
    service_nodes=ServiceNodes(resource_type=_CLUSTER, called="HyperPod cluster", running=running_nodes),
    ec2_shows_nodes=False,
    can_sleep=False,
)
