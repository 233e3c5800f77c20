"""The training jobs of SageMaker and their queues in AWS Batch, for `trn audit`."""

from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.listings.models import INSTANCES, sagemaker_resource
from trainium_core.audit.resource import FREE, Resource

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


@Listing(
    "job queue",
    "AWS::Batch::JobQueue",
    arn_type="batch:job-queue",
    permission="batch:DescribeJobQueues",
    entries="jobQueues[]",
    in_estimates=False,
)
def _queues(entry: Entry, _location: Location) -> Resource:
    return _batch_resource(entry, "jobQueue")


@Listing(
    "service environment",
    "AWS::Batch::ServiceEnvironment",
    arn_type="batch:service-environment",
    permission="batch:DescribeServiceEnvironments",
    entries="serviceEnvironments[]",
    in_estimates=False,
)
def _environments(entry: Entry, _location: Location) -> Resource:
    return _batch_resource(entry, "serviceEnvironment")


def _batch_resource(entry: Entry, prefix: str) -> Resource:
    name, arn = entry[f"{prefix}Name"], entry[f"{prefix}Arn"]
    return Resource(
        name=name,
        arn=arn,
        ids=frozenset([name, arn]),
        tags=entry.get("tags", {}),
        state=entry.get("state", ""),
        charge=FREE,
    )


LISTINGS = (_jobs, _queues, _environments)
