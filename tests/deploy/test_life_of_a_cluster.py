"""One cluster from its first deployment to its end: each test looks at one moment of this life."""

import re
from dataclasses import dataclass

import pytest

from tests.constructs.synth import Template, cluster_template
from tests.deploy.account import Account, Run, differences, events, instance_ids, outputs
from tools.demo.deployed_cluster import DeployedCluster
from tools.demo.inventory import Inventory
from trainium_core.naming import CACHE_PREFIX

EXACTLY_COUNTED = {
    "VPCs": "AWS::EC2::VPC",
    "subnets": "AWS::EC2::Subnet",
    "VPC endpoints": "AWS::EC2::VPCEndpoint",
    "placement groups": "AWS::EC2::PlacementGroup",
    "launch templates": "AWS::EC2::LaunchTemplate",
    "Auto Scaling groups": "AWS::AutoScaling::AutoScalingGroup",
    "S3 buckets": "AWS::S3::Bucket",
    "Lambda functions": "AWS::Lambda::Function",
    "log groups": "AWS::Logs::LogGroup",
    "IAM roles": "AWS::IAM::Role",
    "instance profiles": "AWS::IAM::InstanceProfile",
}
"""Kinds with exactly one resource per template resource, to which AWS adds none."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The account right after a deployment."""

    cluster: DeployedCluster
    nodes: frozenset[str]
    inventory: Inventory


def a_moment(account: Account) -> Moment:
    cluster = account.cluster()
    return Moment(cluster=cluster, nodes=frozenset(instance_ids(cluster)), inventory=account.inventory())


@pytest.fixture(scope="module")
def template() -> Template:
    return cluster_template(nodes=2)


@pytest.fixture(scope="module")
def bootstrapped(account: Account) -> Inventory:
    return account.inventory()


@pytest.fixture(scope="module")
def deployed(account: Account, bootstrapped: Inventory, template: Template) -> Moment:  # noqa: ARG001
    account.deploy(template)
    return a_moment(account)


@pytest.fixture(scope="module")
def created(account: Account, deployed: Moment) -> list[str]:  # noqa: ARG001
    """Logical IDs of the resources of the first deployment, from its events."""
    complete = [event for event in events(account) if event["ResourceStatus"] == "CREATE_COMPLETE"]
    return [event["LogicalResourceId"] for event in complete if event["PhysicalResourceId"] != event["StackId"]]


@pytest.fixture(scope="module")
def redeployed(account: Account, template: Template, created: list[str]) -> Run:  # noqa: ARG001
    return account.cdk_deploy(template)


@pytest.fixture(scope="module")
def difference(account: Account, redeployed: Run) -> str:  # noqa: ARG001
    return account.diff(cluster_template(nodes=4))


@pytest.fixture(scope="module")
def grown(account: Account, difference: str) -> Moment:  # noqa: ARG001
    account.cdk_deploy(cluster_template(nodes=4))
    return a_moment(account)


@pytest.fixture(scope="module")
def shrunk(account: Account, grown: Moment) -> Moment:  # noqa: ARG001
    account.deploy(cluster_template(nodes=1))
    return a_moment(account)


@pytest.fixture(scope="module")
def destroyed(account: Account, shrunk: Moment) -> Inventory:
    bucket = outputs(shrunk.cluster)["CompileCache"].split("/")[2]
    account.aws.client("s3").put_object(Bucket=bucket, Key=f"{CACHE_PREFIX}/graph.neff", Body=b"compiled")
    account.destroy()
    return account.inventory()


def test_every_resource_of_the_template_is_created_and_listed(
    template: Template, deployed: Moment, created: list[str]
) -> None:
    assert sorted(created) == sorted(template.resources())
    assert sorted(one["LogicalResourceId"] for one in deployed.cluster.resources) == sorted(created)


@pytest.mark.parametrize("kind", EXACTLY_COUNTED)
def test_resource_counts_match_the_template(
    bootstrapped: Inventory, deployed: Moment, template: Template, kind: str
) -> None:
    assert len(deployed.inventory[kind] - bootstrapped[kind]) == len(template.resources(EXACTLY_COUNTED[kind])) > 0


def test_every_node_has_an_efa_interface_on_each_of_its_eight_cards(deployed: Moment) -> None:
    cards = [
        sorted((one["Attachment"]["NetworkCardIndex"], one["InterfaceType"]) for one in node["NetworkInterfaces"])
        for node in deployed.cluster.instances
    ]
    assert cards == [[(card, "efa") for card in range(8)]] * 2


def test_deployment_waited_for_the_record_of_every_node(deployed: Moment) -> None:
    assert {record.instance_id for record in deployed.cluster.records} == deployed.nodes
    assert outputs(deployed.cluster)["Fleet"] == "2 of 2 nodes verified"


def test_records_of_all_nodes_name_the_same_membership(deployed: Moment) -> None:
    assert {record.membership for record in deployed.cluster.records} != {""}
    assert len({record.membership for record in deployed.cluster.records}) == 1


def test_repeated_deployment_changes_nothing(redeployed: Run) -> None:
    assert "(no changes)" in redeployed.printed


def test_scale_out_diff_has_no_aws_resource_except_the_group_and_the_record(difference: str) -> None:
    changed = set(re.findall(r"^\[~\] (\S+)", difference, re.MULTILINE))
    aws = {one for one in changed if one.startswith("AWS::")}
    assert aws == {"AWS::AutoScaling::AutoScalingGroup", "AWS::SSM::Parameter"}


def test_scale_out_launches_missing_nodes_and_keeps_running_ones(deployed: Moment, grown: Moment) -> None:
    assert len(grown.nodes) == 4
    assert deployed.nodes < grown.nodes


def test_scale_in_keeps_the_desired_number_of_nodes_and_their_volumes(
    grown: Moment, shrunk: Moment, bootstrapped: Inventory
) -> None:
    assert len(shrunk.nodes) == 1
    assert shrunk.inventory["instances"] == shrunk.nodes
    assert shrunk.nodes < grown.nodes
    assert outputs(shrunk.cluster)["Fleet"] == "1 of 1 nodes verified"
    assert len(shrunk.inventory["volumes"] - bootstrapped["volumes"]) == 1


def test_destroy_restores_the_account(bootstrapped: Inventory, destroyed: Inventory) -> None:
    assert differences(bootstrapped, destroyed) == []
