"""What the author of a plan should know of the stacks of trn:stacks."""

from collections.abc import Mapping

from trainium_core.engines.ec2.warnings import cluster_warnings
from trainium_core.engines.projections import projections_for
from trainium_core.plan import Plan
from trainium_core.plan.warnings import merged


def plan_warnings(plan: Plan) -> Mapping[str, str]:
    """Warnings by setting: of the cluster, whose plan it is in any case, and of the stacks beside it."""
    stacks = [cluster_warnings(plan), *(engine.warnings(plan) for engine in projections_for(plan).values())]
    return merged(warning for warnings in stacks for warning in warnings.items())
