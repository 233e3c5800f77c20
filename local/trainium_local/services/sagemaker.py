"""SageMaker: instance types newer than moto's list, and an option of CreateCluster that moto takes to be required."""

from typing import Any

from moto.sagemaker.models import SageMakerModelBackend

_moto_create_cluster = SageMakerModelBackend.create_cluster


def accept_any_instance_type(_configuration: Any, instance_type: str) -> None:
    """moto's list ends before inf2 and trn1."""


def create_cluster(backend: Any, cluster_name: str, instance_groups: Any, vpc_config: Any, tags: Any) -> Any:
    groups = [{"ThreadsPerCore": 1} | group for group in instance_groups or []]
    return _moto_create_cluster(backend, cluster_name, groups, vpc_config, tags)
