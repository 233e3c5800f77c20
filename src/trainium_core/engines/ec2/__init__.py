"""EC2: a cluster of instances in an Auto Scaling group, connected by EFA."""

from trainium_core.engines.engine import Engine
from trainium_core.naming import STACK_NAME

EC2 = Engine(
    key="cluster",
    construct_id=STACK_NAME,
    stack_class="stacks.trn_cluster_stack:TrnClusterStack",
    rules="trainium_core.engines.ec2.rules:RULES",
    warnings="trainium_core.engines.ec2.warnings:cluster_warnings",
    projections="trainium_core.engines.ec2.projections:PROJECTIONS",
    checks="trainium_core.engines.ec2.checks:CHECKS",
)
