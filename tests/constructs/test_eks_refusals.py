"""Node groups for EKS, and roles of pods, that are refused at synthesis."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from typing import Any

import pytest
from aws_cdk import Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk.aws_ecr import Repository

from tests.constructs.plans import RESERVATION
from tests.constructs.synth import REGION, new_app
from tests.constructs.test_eks import TRN1, existing_cluster
from trainium_cdk import Capacity, NeuronNodeGroup, NodeVerification, PodRole, PropsError

_numbers = count()


def unique(name: str) -> str:
    return f"{name}{next(_numbers)}"


@cache
def place() -> tuple[Stack, Any]:
    """A stack and a cluster that all refused node groups share."""
    stack = Stack(new_app(), "Nodes", env=Environment(region=REGION, account="111122223333"))
    return stack, existing_cluster(stack)


def group(**props: Any) -> NeuronNodeGroup:
    stack, cluster = place()
    return NeuronNodeGroup(stack, unique("Group"), **{"cluster": cluster, "instance_type": TRN1, **props})


def pod_role(**props: Any) -> PodRole:
    stack, cluster = place()
    return PodRole(stack, unique("Role"), **{"cluster": cluster, "service_account": "trainer", **props})


def verification(**props: Any) -> NodeVerification:
    return NodeVerification(place()[0], unique("Verification"), **{"image": "training:1", **props})


def cluster_in(region: str, account: str = "111122223333") -> Any:
    stack = Stack(place()[0].node.root, unique("Other"), env=Environment(region=region, account=account))
    return existing_cluster(stack)


def labelled(key: str, value: str = "x") -> Callable[[], object]:
    return lambda: group(labels={key: value})


REFUSED: Mapping[str, tuple[Callable[[], object], str, str]] = {
    "type with GPUs": (
        lambda: group(instance_type=ec2.InstanceType("p5.48xlarge")),
        "instance_type",
        "a Trainium type",
    ),
    "type of another region": (
        lambda: group(instance_type=ec2.InstanceType("trn2.48xlarge")),
        "the region of the stack",
        "trn2.48xlarge",
    ),
    "cluster of another region": (lambda: group(cluster=cluster_in("us-east-2")), "cluster", "a cluster of us-west-2"),
    "cluster of another account": (
        lambda: pod_role(cluster=cluster_in(REGION, "444455556666")),
        "cluster",
        "a cluster of 111122223333",
    ),
    "cluster without its VPC": (
        lambda: group(cluster=existing_cluster(place()[0], unique("Existing"), vpc=None)),
        "cluster",
        "from_cluster_attributes(..., vpc=vpc, cluster_security_group_id='sg-...')",
    ),
    "cluster without its security group": (
        lambda: group(cluster=existing_cluster(place()[0], unique("Existing"), cluster_security_group_id=None)),
        "cluster",
        "clusterSecurityGroupId",
    ),
    "more desired nodes than nodes": (lambda: group(nodes=2, desired_nodes=3), "desired_nodes", "0 to 2"),
    "negative desired nodes": (lambda: group(desired_nodes=-1), "desired_nodes", "0 to 1"),
    "no nodes": (lambda: group(nodes=0), "nodes", "1"),
    "more nodes than a Capacity Block": (
        lambda: group(nodes=65, capacity=Capacity.capacity_block(RESERVATION)),
        "nodes",
        "up to 64",
    ),
    "Capacity Block with a placement group": (
        lambda: group(
            capacity=Capacity.capacity_block(RESERVATION),
            placement_group=ec2.PlacementGroup.from_placement_group_name(place()[0], unique("Close"), "close"),
        ),
        "placement_group",
        "a Capacity Block already places its instances close together",
    ),
    "name of another group": (
        lambda: [group(cluster_name="twice"), group(cluster_name="twice")],
        "cluster_name",
        "another name than that of Nodes/Group",
    ),
    "label of Kubernetes": (labelled("node.kubernetes.io/kind"), "labels", "choose your own prefix"),
    "label of EKS": (labelled("eks.amazonaws.com/kind"), "labels", "choose your own prefix"),
    "label of this package": (labelled("trn/cluster"), "labels", "choose your own prefix"),
    "label with an invalid key": (labelled("a b"), "labels", "up to 63 letters"),
    "label with an invalid value": (labelled("example.com/a", "x y"), "labels", "up to 63 letters"),
    "secondary interfaces on one card": (
        lambda: group(instance_type=ec2.InstanceType("trn1.2xlarge"), secondary_interface_type="efa"),
        "secondary_interface_type",
        "one network card",
    ),
    "invalid service account": (lambda: pod_role(service_account="Trainer"), "service_account", "up to 253"),
    "invalid namespace": (lambda: pod_role(namespace="a.b"), "namespace", "1 to 63"),
    "image that is known at deployment": (
        lambda: verification(image=Repository(place()[0], unique("Images")).repository_uri_for_tag("1")).manifest,
        "image",
        "a value known at synthesis",
    ),
    "empty image": (lambda: verification(image=""), "image", "an image with tag or digest"),
    "namespace with capitals": (lambda: verification(namespace="Kube System"), "namespace", "1 to 63"),
    "cluster of a wrong type": (lambda: group(cluster="prod"), "cluster", "EksCluster"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_parameter_is_refused(name: str) -> None:
    create, parameter, text = REFUSED[name]
    with pytest.raises(PropsError, match=re.escape(text)) as caught:
        create()
    assert parameter in [problem.key for problem in caught.value.problems]
