"""SageMaker training: runs the plan as training jobs, without permanent nodes."""

from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.listings.models import INSTANCES, of_sagemaker
from trainium_core.audit.resource import Resource
from trainium_core.engines.engine import Engine
from trainium_core.engines.sagemaker.aws_workloads import WORKLOADS
from trainium_core.engines.sagemaker.costs import cost_items, cost_notes
from trainium_core.engines.sagemaker.quota_check import check_training_quota
from trainium_core.engines.sagemaker.warnings import training_warnings
from trainium_core.plan import Plan

_RUNNING, _WARM = ("InProgress", "Stopping"), "Available"


def _needs_vpc(plan: Plan) -> bool:
    return plan.sagemaker.vpc


@Listing(
    "SageMaker training job",
    "AWS::SageMaker::TrainingJob",
    arn_type="sagemaker:training-job",
    permission="sagemaker:ListTrainingJobs",
    entries="TrainingJobSummaries[]",
    arguments={"StatusEquals": "InProgress"},
    more_arguments=({"StatusEquals": "Stopping"}, {"WarmPoolStatusEquals": _WARM}),
)
def _jobs(entry: Entry, _location: Location) -> Resource | None:
    """A running job, or a job with a warm pool; None for others, which are not billed."""
    state, warm = entry["TrainingJobStatus"], entry.get("WarmPoolStatus", {}).get("Status") == _WARM
    if state not in _RUNNING and not warm:
        return None
    return of_sagemaker(entry, "TrainingJob", state=f"{state}, warm pool" if warm else state, charge=INSTANCES)


SAGEMAKER = Engine(
    key="sagemaker",
    cost_items=cost_items,
    cost_notes=cost_notes,
    warnings=training_warnings,
    needs_vpc=_needs_vpc,
    checks={"training": check_training_quota},
    listings=(_jobs,),
    workloads=WORKLOADS,
    ends_with_pilot=False,
)
