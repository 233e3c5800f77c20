"""Resources for models: SageMaker endpoints and models, and ECR repositories."""

from dataclasses import replace
from typing import Any

from trainium_core.audit.listings.listing import ClientFactory, Entry, Listing, Location, gib
from trainium_core.audit.resource import FREE, Charge, Resource
from trainium_core.plurals import count
from trainium_runtime.aws_errors import read_errors

INSTANCES = Charge(unpriced="its instances")


def sagemaker_resource(entry: Entry, prefix: str, *, state: str = "", charge: Charge = FREE) -> Resource:
    name, arn = entry[f"{prefix}Name"], entry[f"{prefix}Arn"]
    created: Any = entry.get("CreationTime")
    return Resource(name=name, arn=arn, ids=frozenset([name, arn]), state=state, created=created, charge=charge)


@Listing(
    "SageMaker endpoint",
    "AWS::SageMaker::Endpoint",
    arn_type="sagemaker:endpoint",
    permission="sagemaker:ListEndpoints",
)
def _endpoints(entry: Entry, _location: Location) -> Resource:
    return sagemaker_resource(entry, "Endpoint", state=entry["EndpointStatus"], charge=INSTANCES)


@Listing(
    "SageMaker model",
    "AWS::SageMaker::Model",
    arn_type="sagemaker:model",
    permission="sagemaker:ListModels",
    in_estimates=False,
)
def _models(entry: Entry, _location: Location) -> Resource:
    return sagemaker_resource(entry, "Model")


def _measure_repository(client_of: ClientFactory, repository: Resource) -> Resource | None:
    with read_errors("ecr:DescribeImages"):
        pages = client_of("ecr").get_paginator("describe_images").paginate(repositoryName=repository.name)
        sizes = [image.get("imageSizeInBytes", 0) for page in pages for image in page["imageDetails"]]
    charge = Charge(unpriced="image storage") if sizes else FREE
    return replace(repository, detail=f"{count(len(sizes), 'image')}, {gib(sum(sizes))}", charge=charge)


@Listing(
    "ECR repository",
    "AWS::ECR::Repository",
    arn_type="ecr:repository",
    permission="ecr:DescribeRepositories",
    entries="repositories[]",
    measure=_measure_repository,
)
def _repositories(entry: Entry, _location: Location) -> Resource:
    return Resource(
        name=entry["repositoryName"],
        arn=entry["repositoryArn"],
        ids=frozenset([entry["repositoryName"]]),
        created=entry.get("createdAt"),
        charge=Charge(unpriced="storage that was not counted"),
    )


MODELS = (_endpoints, _models, _repositories)
