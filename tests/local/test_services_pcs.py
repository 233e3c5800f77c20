"""AWS PCS of the embedded AWS: refusals that its API reference names, and descriptions of what was created."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws

SCHEDULER = {"type": "SLURM", "version": "26.05"}
NETWORK = {"subnetIds": ["subnet-0123456789abcdef0"]}
GROUP: dict[str, Any] = {
    "computeNodeGroupName": "nodes",
    "subnetIds": ["subnet-0123456789abcdef0"],
    "iamInstanceProfileArn": "arn:aws:iam::123456789012:instance-profile/p",
    "instanceConfigs": [{"instanceType": "trn1.32xlarge"}],
    "scalingConfiguration": {"minInstanceCount": 0, "maxInstanceCount": 2},
}


def create_cluster(pcs: Any, name: str) -> str:
    made = pcs.create_cluster(clusterName=name, scheduler=SCHEDULER, size="SMALL", networking=NETWORK)
    return made["cluster"]["id"]


def test_cluster_and_group_in_use_are_not_deleted(embedded_aws: EmbeddedAws) -> None:
    pcs = embedded_aws.client("pcs")
    of = {"clusterIdentifier": create_cluster(pcs, "ordered")}
    group = pcs.create_compute_node_group(**of, **GROUP)["computeNodeGroup"]["id"]
    in_queue = [{"computeNodeGroupId": group}]
    pcs.create_queue(**of, queueName="first", computeNodeGroupConfigurations=in_queue)
    for delete in (
        lambda: pcs.delete_cluster(**of),
        lambda: pcs.delete_compute_node_group(**of, computeNodeGroupIdentifier=group),
    ):
        with pytest.raises(ClientError, match="ConflictException"):
            delete()
    pcs.delete_queue(**of, queueIdentifier="first")
    pcs.delete_compute_node_group(**of, computeNodeGroupIdentifier="nodes")
    pcs.delete_cluster(**of)
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        pcs.get_cluster(**of)


def test_group_is_found_by_name_and_id_and_changes(embedded_aws: EmbeddedAws) -> None:
    pcs = embedded_aws.client("pcs")
    create_cluster(pcs, "changed")
    group = pcs.create_compute_node_group(clusterIdentifier="changed", **GROUP, tags={"a": "b"})["computeNodeGroup"]
    wanted = {"minInstanceCount": 0, "maxInstanceCount": 1}
    named = {"clusterIdentifier": "changed", "computeNodeGroupIdentifier": group["id"]}
    pcs.update_compute_node_group(**named, scalingConfiguration=wanted)
    shown = pcs.get_compute_node_group(clusterIdentifier="changed", computeNodeGroupIdentifier="nodes")
    assert shown["computeNodeGroup"]["scalingConfiguration"] == wanted
    assert pcs.list_tags_for_resource(resourceArn=group["arn"])["tags"] == {"a": "b"}
    pcs.delete_compute_node_group(**named)
    pcs.delete_cluster(clusterIdentifier="changed")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"scheduler": {"type": "SLURM", "version": "25.05"}}, "ValidationException"),
        ({"clusterName": "taken"}, "ConflictException"),
    ],
    ids=["ended-version", "name"],
)
def test_invalid_cluster_is_refused(embedded_aws: EmbeddedAws, change: dict[str, Any], code: str) -> None:
    pcs = embedded_aws.client("pcs")
    cluster = create_cluster(pcs, "taken")
    wanted = {"clusterName": "another", "scheduler": SCHEDULER, "size": "SMALL", "networking": NETWORK}
    try:
        with pytest.raises(ClientError, match=code):
            pcs.create_cluster(**{**wanted, **change})
    finally:
        pcs.delete_cluster(clusterIdentifier=cluster)
