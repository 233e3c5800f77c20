"""One cluster from its first deployment to its end: each test looks at one moment of the same story."""

import re
from collections import Counter
from dataclasses import dataclass

import pytest

from tests.constructs.synth import Template, cluster_template
from tests.deploy.account import Account, Run, differences, events, instance_ids, outputs
from tools.demo.deployed_cluster import DeployedCluster
from tools.demo.inventory import Inventory, added
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
"""Kinds that come one for one with a type of the template, without anything that AWS adds of itself."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The account right after a command."""

    run: Run
    cluster: DeployedCluster
    nodes: frozenset[str]
    inventory: Inventory


def a_moment(account: Account, run: Run) -> Moment:
    cluster = account.cluster()
    return Moment(run=run, cluster=cluster, nodes=frozenset(instance_ids(cluster)), inventory=account.inventory())


@pytest.fixture(scope="module")
def template() -> Template:
    return cluster_template(nodes=2)


@pytest.fixture(scope="module")
def bootstrapped(account: Account) -> Inventory:
    return account.inventory()


@pytest.fixture(scope="module")
def deployed(account: Account, bootstrapped: Inventory, template: Template) -> Moment:  # noqa: ARG001
    return a_moment(account, account.cdk_deploy(template))


@pytest.fixture(scope="module")
def created(account: Account, deployed: Moment) -> list[str]:  # noqa: ARG001
    """Logical ids of what the first deployment created, by its events."""
    complete = [event for event in events(account) if event["ResourceStatus"] == "CREATE_COMPLETE"]
    return [event["LogicalResourceId"] for event in complete if event["PhysicalResourceId"] != event["StackId"]]


@pytest.fixture(scope="module")
def redeployed(account: Account, template: Template, created: list[str]) -> Moment:  # noqa: ARG001
    return a_moment(account, account.cdk_deploy(template))


@pytest.fixture(scope="module")
def difference(account: Account, redeployed: Moment) -> str:  # noqa: ARG001
    return account.diff(cluster_template(nodes=4))


@pytest.fixture(scope="module")
def grown(account: Account, difference: str) -> Moment:  # noqa: ARG001
    return a_moment(account, account.cdk_deploy(cluster_template(nodes=4)))


@pytest.fixture(scope="module")
def shrunk(account: Account, grown: Moment) -> Moment:  # noqa: ARG001
    return a_moment(account, account.cdk_deploy(cluster_template(nodes=1)))


@pytest.fixture(scope="module")
def destroyed(account: Account, shrunk: Moment) -> Inventory:
    bucket = outputs(shrunk.cluster)["CompileCache"].split("/")[2]
    account.aws.client("s3").put_object(Bucket=bucket, Key=f"{CACHE_PREFIX}/graph.neff", Body=b"compiled")
    account.cdk_destroy(cluster_template(nodes=1))
    return account.inventory()


def test_everything_in_the_template_is_created(template: Template, created: list[str]) -> None:
    assert sorted(created) == sorted(template.resources())


def test_everything_that_is_created_is_listed(deployed: Moment, created: list[str]) -> None:
    assert sorted(one["LogicalResourceId"] for one in deployed.cluster.resources) == sorted(created)


@pytest.mark.parametrize("kind", EXACTLY_COUNTED)
def test_as_many_exist_as_the_template_lists(
    bootstrapped: Inventory, deployed: Moment, template: Template, kind: str
) -> None:
    assert len(deployed.inventory[kind] - bootstrapped[kind]) == len(template.resources(EXACTLY_COUNTED[kind])) > 0


def test_what_was_there_before_a_deployment_is_there_after_it(bootstrapped: Inventory, deployed: Moment) -> None:
    assert added(deployed.inventory, bootstrapped) == []


def test_there_are_as_many_instances_as_nodes(bootstrapped: Inventory, deployed: Moment) -> None:
    assert deployed.nodes == deployed.inventory["instances"] - bootstrapped["instances"]
    assert len(deployed.nodes) == 2


def test_every_node_has_an_efa_interface_on_each_of_its_eight_cards(deployed: Moment) -> None:
    cards = [
        sorted((one["Attachment"]["NetworkCardIndex"], one["InterfaceType"]) for one in node["NetworkInterfaces"])
        for node in deployed.cluster.instances
    ]
    assert cards == [[(card, "efa") for card in range(8)]] * 2


def test_every_node_is_in_the_placement_group_and_the_subnet_of_the_stack(deployed: Moment) -> None:
    (group,) = deployed.cluster.ids("AWS::EC2::PlacementGroup")
    (subnet,) = deployed.cluster.ids("AWS::EC2::Subnet")
    places = {(node["Placement"]["GroupName"], node["SubnetId"]) for node in deployed.cluster.instances}
    assert places == {(group, subnet)}


def test_every_node_has_one_encrypted_volume(deployed: Moment) -> None:
    volumes = deployed.cluster.volumes
    assert Counter(volume["Attachments"][0]["InstanceId"] for volume in volumes) == Counter(deployed.nodes)
    assert all(volume["Encrypted"] for volume in volumes)


def test_the_deployment_waited_for_the_record_of_every_node(deployed: Moment) -> None:
    assert {record.instance_id for record in deployed.cluster.records} == deployed.nodes
    assert outputs(deployed.cluster)["Fleet"] == "2 of 2 nodes proven"


def test_every_node_of_a_cluster_has_reached_the_others(deployed: Moment) -> None:
    assert {record.roster for record in deployed.cluster.records} != {""}
    assert len({record.roster for record in deployed.cluster.records}) == 1


def test_instances_are_tagged_with_what_they_reported(deployed: Moment) -> None:
    tags = [{tag["Key"]: tag["Value"] for tag in node["Tags"]} for node in deployed.cluster.instances]
    assert [tag["trn:node"] for tag in tags] == ["proven", "proven"]


def test_the_cache_in_the_outputs_is_a_bucket_of_the_stack(deployed: Moment) -> None:
    match = re.fullmatch(r"s3://([^/]+)/neuron-compile-cache", outputs(deployed.cluster)["CompileCache"])
    assert match is not None
    assert match[1] in deployed.cluster.ids("AWS::S3::Bucket")


@pytest.mark.parametrize("name", ["Session", "Group"])
def test_a_command_in_the_outputs_names_the_group_that_exists(deployed: Moment, name: str) -> None:
    (group,) = deployed.cluster.ids("AWS::AutoScaling::AutoScalingGroup")
    assert group in outputs(deployed.cluster)[name]


def test_the_torchrun_line_is_for_these_nodes(deployed: Moment) -> None:
    assert "--nnodes=2 --nproc_per_node=32" in outputs(deployed.cluster)["Torchrun"]


def test_the_cli_shows_the_outputs(deployed: Moment) -> None:
    assert "TrnClusterStack.Destroy = cdk destroy TrnClusterStack" in deployed.run.printed


def test_deploying_the_same_again_changes_nothing(deployed: Moment, redeployed: Moment) -> None:
    assert "(no changes)" in redeployed.run.printed
    assert differences(deployed.inventory, redeployed.inventory) == []


def test_the_difference_of_a_scale_out_is_the_group_alone_besides_gates_and_outputs(difference: str) -> None:
    changed = set(re.findall(r"^\[~\] (\S+)", difference, re.MULTILINE))
    assert {one for one in changed if one.startswith("AWS::")} == {"AWS::AutoScaling::AutoScalingGroup"}


def test_a_scale_out_launches_what_is_missing_and_keeps_the_nodes_that_run(deployed: Moment, grown: Moment) -> None:
    assert len(grown.nodes) == 4
    assert deployed.nodes < grown.nodes


def test_a_scale_out_waits_for_the_record_of_every_node(grown: Moment) -> None:
    assert grown.nodes <= {record.instance_id for record in grown.cluster.records}
    assert outputs(grown.cluster)["Fleet"] == "4 of 4 nodes proven"


def test_a_scale_in_leaves_the_desired_capacity(grown: Moment, shrunk: Moment) -> None:
    assert len(shrunk.nodes) == 1
    assert shrunk.inventory["instances"] == shrunk.nodes
    assert shrunk.nodes < grown.nodes


def test_a_scale_in_reports_the_nodes_that_stay(shrunk: Moment) -> None:
    assert outputs(shrunk.cluster)["Fleet"] == "1 of 1 nodes proven"


def test_nodes_that_went_leave_no_interface_or_volume(shrunk: Moment, bootstrapped: Inventory) -> None:
    assert len(shrunk.inventory["volumes"] - bootstrapped["volumes"]) == 1


def test_destroying_leaves_the_account_as_it_was(bootstrapped: Inventory, destroyed: Inventory) -> None:
    assert differences(bootstrapped, destroyed) == []
