"""SageMaker HyperPod: a cluster whose nodes SageMaker watches and replaces, orchestrated by Slurm or EKS."""

from trainium_core.engines.engine import Engine, ServiceLogs, ServiceNodes
from trainium_core.engines.hyperpod.settings import HyperPodSettings

HYPERPOD = Engine(
    key="hyperpod",
    construct_id="HyperPodStack",
    stack_class="stacks.hyperpod_stack:HyperPodStack",
    settings=HyperPodSettings,
    rules="trainium_core.engines.hyperpod.rules:RULES",
    warnings="trainium_core.engines.hyperpod.warnings:hyperpod_warnings",
    projections="trainium_core.engines.hyperpod.projections:PROJECTIONS",
    checks="trainium_core.engines.hyperpod.quota_check:CHECKS",
    can_sleep=False,
    ec2_shows_nodes=False,
    audited="trainium_core.engines.hyperpod.audited:LISTINGS",
    service_logs=ServiceLogs(prefix="/aws/sagemaker/Clusters/", resource_type="AWS::SageMaker::Cluster"),
    service_nodes=ServiceNodes(
        resource_type="AWS::SageMaker::Cluster",
        called="HyperPod cluster",
        running="trainium_core.engines.hyperpod.aws_nodes:running_nodes",
    ),
)
