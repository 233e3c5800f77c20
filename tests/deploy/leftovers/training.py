"""SageMaker resources, AWS PCS clusters, and image repositories."""

from collections.abc import Mapping
from typing import Any

from tests.deploy.leftovers.maker import Creator, Maker


def _sagemaker_endpoint(maker: Maker) -> str:
    sagemaker, name = maker.client("sagemaker"), maker.name("endpoint")
    model = {"ModelName": f"of-{name}", "ExecutionRoleArn": "arn:aws:iam::123456789012:role/x"}
    sagemaker.create_model(**model, PrimaryContainer={"Image": "image"})
    variant = {
        "VariantName": "v",
        "ModelName": f"of-{name}",
        "InitialInstanceCount": 1,
        "InstanceType": "ml.trn1.2xlarge",
    }
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name, Tags=maker.tags)
    return name


def _model(maker: Maker) -> str:
    parameters = {"ModelName": maker.name("model"), "ExecutionRoleArn": "arn:aws:iam::123456789012:role/x"}
    maker.client("sagemaker").create_model(**parameters, PrimaryContainer={"Image": "image"}, Tags=maker.tags)
    return maker.name("model")


def _service_environment(maker: Maker) -> str:
    return _create_environment(maker, maker.name("environment"), tags=maker.tag_map)


def _create_environment(maker: Maker, name: str, **more: Any) -> str:
    limits = [{"capacityUnit": "NUM_INSTANCES", "maxCapacity": 1}]
    maker.client("batch").create_service_environment(
        serviceEnvironmentName=name, serviceEnvironmentType="SAGEMAKER_TRAINING", capacityLimits=limits, **more
    )
    return name


def _job_queue(maker: Maker) -> str:
    """In an environment without a tag, which is of no cluster."""
    name = maker.name("queue")
    order = [{"order": 1, "serviceEnvironment": _create_environment(maker, f"of-{name}")}]
    maker.client("batch").create_job_queue(
        jobQueueName=name, priority=1, serviceEnvironmentOrder=order, tags=maker.tag_map
    )
    return name


def _slurm_cluster(maker: Maker) -> str:
    maker.client("pcs").create_cluster(
        clusterName=maker.name("slurm"),
        scheduler={"type": "SLURM", "version": "26.05"},
        size="SMALL",
        networking={"subnetIds": [maker.create_subnet()]},
        tags=maker.tag_map,
    )
    return maker.name("slurm")


def _repository(maker: Maker) -> str:
    name = maker.name("images").lower()
    maker.client("ecr").create_repository(repositoryName=name, tags=maker.tags)
    return name


TRAINING: Mapping[str, Creator] = {
    "AWS PCS cluster": _slurm_cluster,
    "SageMaker endpoint": _sagemaker_endpoint,
    "SageMaker model": _model,
    "ECR repository": _repository,
    "job queue": _job_queue,
    "service environment": _service_environment,
}
