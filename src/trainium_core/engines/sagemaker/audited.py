"""SageMaker training jobs as an audit lists them."""

from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.listings.models import INSTANCES, of_sagemaker
from trainium_core.audit.resource import Resource

_RUNNING, _WARM = ("InProgress", "Stopping"), "Available"


def _job(entry: Entry, _location: Location) -> Resource | None:
    """None for a job that has ended and keeps no instances: it is history, and not billed."""
    state, warm = entry["TrainingJobStatus"], entry.get("WarmPoolStatus", {}).get("Status") == _WARM
    if state not in _RUNNING and not warm:
        return None
    return of_sagemaker(entry, "TrainingJob", state=f"{state}, warm pool" if warm else state, charge=INSTANCES)


LISTINGS = (
    Listing(
        kind="SageMaker training job",
        resource_type="AWS::SageMaker::TrainingJob",
        arn_type="sagemaker:training-job",
        service="sagemaker",
        operation="list_training_jobs",
        permission="sagemaker:ListTrainingJobs",
        entries="TrainingJobSummaries[]",
        read=_job,
        arguments={"StatusEquals": "InProgress"},
        again=({"StatusEquals": "Stopping"}, {"WarmPoolStatusEquals": _WARM}),
    ),
)
