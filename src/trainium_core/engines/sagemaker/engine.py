"""SageMaker training: runs the plan as training jobs, without nodes that stay."""

from trainium_core.engines.engine import Engine
from trainium_core.engines.sagemaker.audited import LISTINGS
from trainium_core.engines.sagemaker.aws_workloads import WORKLOADS
from trainium_core.engines.sagemaker.costs import cost_items, cost_notes
from trainium_core.engines.sagemaker.quota_check import check_training_quota
from trainium_core.engines.sagemaker.warnings import training_warnings
from trainium_core.plan import Plan


def _needs_vpc(plan: Plan) -> bool:
    return plan.sagemaker.vpc


SAGEMAKER = Engine(
    key="sagemaker",
    cost_items=cost_items,
    cost_notes=cost_notes,
    warnings=training_warnings,
    needs_vpc=_needs_vpc,
    checks={"training": check_training_quota},
    listings=LISTINGS,
    workloads=WORKLOADS,
    ends_with_pilot=False,
)
