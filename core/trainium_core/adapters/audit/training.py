"""What SageMaker runs, and repositories of images."""

from dataclasses import replace
from typing import Any

from trainium_core.adapters.audit.listing import Ask, Entry, Listing, Place, gib
from trainium_core.audit.resource import FREE, Charge, Resource
from trainium_runtime.aws_errors import read_errors

_INSTANCES = Charge(unpriced="its instances")
_RUNNING, _WARM = ("InProgress", "Stopping"), "Available"


def _job(entry: Entry, _place: Place) -> Resource | None:
    """None for one that has ended, which costs nothing and stays as history, unless it keeps its instances."""
    state, warm = entry["TrainingJobStatus"], entry.get("WarmPoolStatus", {}).get("Status") == _WARM
    if state not in _RUNNING and not warm:
        return None
    return _of_sagemaker(entry, "TrainingJob", state=f"{state}, warm pool" if warm else state, charge=_INSTANCES)


def _cluster(entry: Entry, _place: Place) -> Resource:
    return _of_sagemaker(entry, "Cluster", state=entry["ClusterStatus"], charge=_INSTANCES)


def _endpoint(entry: Entry, _place: Place) -> Resource:
    return _of_sagemaker(entry, "Endpoint", state=entry["EndpointStatus"], charge=_INSTANCES)


def _model(entry: Entry, _place: Place) -> Resource:
    return _of_sagemaker(entry, "Model")


def _of_sagemaker(entry: Entry, prefix: str, *, state: str = "", charge: Charge = FREE) -> Resource:
    name, arn = entry[f"{prefix}Name"], entry[f"{prefix}Arn"]
    created: Any = entry.get("CreationTime")
    return Resource(name=name, arn=arn, ids=frozenset([name, arn]), state=state, created=created, charge=charge)


def _repository(entry: Entry, _place: Place) -> Resource:
    return Resource(
        name=entry["repositoryName"],
        arn=entry["repositoryArn"],
        ids=frozenset([entry["repositoryName"]]),
        created=entry.get("createdAt"),
        charge=Charge(unpriced="storage that was not counted"),
    )


def _measure_repository(ask: Ask, repository: Resource) -> Resource | None:
    with read_errors("ecr:DescribeImages"):
        pages = ask("ecr").get_paginator("describe_images").paginate(repositoryName=repository.name)
        sizes = [image.get("imageSizeInBytes", 0) for page in pages for image in page["imageDetails"]]
    charge = Charge(unpriced="image storage") if sizes else FREE
    return replace(repository, detail=f"{len(sizes)} images, {gib(sum(sizes))}", charge=charge)


TRAINING = (
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
    Listing(
        kind="HyperPod cluster",
        resource_type="AWS::SageMaker::Cluster",
        arn_type="sagemaker:cluster",
        service="sagemaker",
        operation="list_clusters",
        permission="sagemaker:ListClusters",
        entries="ClusterSummaries[]",
        read=_cluster,
    ),
    Listing(
        kind="SageMaker endpoint",
        resource_type="AWS::SageMaker::Endpoint",
        arn_type="sagemaker:endpoint",
        service="sagemaker",
        operation="list_endpoints",
        permission="sagemaker:ListEndpoints",
        entries="Endpoints[]",
        read=_endpoint,
    ),
    Listing(
        kind="SageMaker model",
        resource_type="AWS::SageMaker::Model",
        arn_type="sagemaker:model",
        service="sagemaker",
        operation="list_models",
        permission="sagemaker:ListModels",
        entries="Models[]",
        read=_model,
    ),
    Listing(
        kind="ECR repository",
        resource_type="AWS::ECR::Repository",
        arn_type="ecr:repository",
        service="ecr",
        operation="describe_repositories",
        permission="ecr:DescribeRepositories",
        entries="repositories[]",
        read=_repository,
        measure=_measure_repository,
    ),
)
