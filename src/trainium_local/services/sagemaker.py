"""SageMaker: instance types newer than moto's list, and options of CreateCluster that moto takes to be required."""

from typing import Any

_NO_SCRIPTS = {"SourceS3Uri": "s3://sagemaker-"}
"""What moto accepts; it is not shown."""


def validate_instance_type(_configuration: Any, instance_type: str) -> None:
    """moto's list ends before inf2 and trn1."""


def create_cluster(
    original: Any, backend: Any, cluster_name: str, instance_groups: Any, vpc_config: Any, tags: Any
) -> Any:
    groups = [{"ThreadsPerCore": 1, "LifeCycleConfig": _NO_SCRIPTS} | group for group in instance_groups or []]
    arn = original(backend, cluster_name, groups, vpc_config, tags)
    cluster = backend.clusters[cluster_name]
    for group in cluster.instance_groups:
        if group["LifeCycleConfig"] is _NO_SCRIPTS:
            del group["LifeCycleConfig"]
    for node in cluster.nodes.values():
        if node.life_cycle_config is _NO_SCRIPTS:
            node.life_cycle_config = {}
    return arn
