"""The training jobs of SageMaker, for `trn audit`."""

from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.listings.models import INSTANCES, sagemaker_resource
from trainium_core.audit.resource import Resource

_RUNNING, _WARM = ("InProgress", "Stopping"), "Available"


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
    return sagemaker_resource(entry, "TrainingJob", state=f"{state}, warm pool" if warm else state, charge=INSTANCES)


LISTINGS = (_jobs,)
