"""SageMaker resources, AWS PCS clusters, parts of EKS clusters, and image repositories."""

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


def _node_group(maker: Maker) -> str:
    name, role, subnets = maker.name("nodes"), maker.create_role(), [maker.create_subnet()]
    cluster = _create_eks_cluster(maker, f"of-{name}", role, subnets)
    maker.client("eks").create_nodegroup(
        clusterName=cluster, nodegroupName=name, subnets=subnets, nodeRole=role, tags=maker.tag_map
    )
    return name


def _pod_identity(maker: Maker) -> str:
    name, role, subnets = maker.name("pods").lower(), maker.create_role(), [maker.create_subnet()]
    cluster = _create_eks_cluster(maker, f"of-{name}", role, subnets)
    pods = {"namespace": "default", "serviceAccount": name}
    maker.client("eks").create_pod_identity_association(clusterName=cluster, **pods, roleArn=role, tags=maker.tag_map)
    return f"default/{name}"


def _create_eks_cluster(maker: Maker, name: str, role: str, subnets: list[str]) -> str:
    """An EKS cluster without a tag, as that of another owner."""
    maker.client("eks").create_cluster(name=name, roleArn=role, resourcesVpcConfig={"subnetIds": subnets})
    return name


TRAINING: Mapping[str, Creator] = {
    "AWS PCS cluster": _slurm_cluster,
    "EKS node group": _node_group,
    "Pod Identity association": _pod_identity,
    "SageMaker endpoint": _sagemaker_endpoint,
    "SageMaker model": _model,
    "ECR repository": _repository,
    "job queue": _job_queue,
    "service environment": _service_environment,
}
