"""Clusters of other plans: each is deployed as requested, and deleted completely."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.constructs.synth import cluster_template
from tests.deploy.account import Account, differences
from tools.demo.inventory import Inventory
from trainium_local.server import Settings

REGION_WITH_STARTED_BLOCK = "ap-south-2"
BLOCK_TYPE = "trn2.48xlarge"


@dataclass(frozen=True, kw_only=True)
class Life:
    """A cluster's node with its user data, and the account before, during and after its life."""

    node: dict[str, Any]
    user_data: str
    before: Inventory
    meanwhile: Inventory
    after: Inventory


def life_of(account: Account, **settings: Any) -> Life:
    before = account.inventory()
    template = cluster_template(nodes=1, **settings)
    account.deploy(template)
    (node,) = account.cluster().instances
    meanwhile, user_data = account.inventory(), account.user_data(node["InstanceId"])
    account.destroy()
    return Life(node=node, user_data=user_data, before=before, meanwhile=meanwhile, after=account.inventory())


@pytest.fixture(scope="module")
def spot(account: Account) -> Life:
    """A Spot node with a NAT gateway."""
    return life_of(account, capacity="spot", egress="nat-gateway")


@pytest.fixture(scope="module")
def block(start_account: Callable[[Settings], Account]) -> Life:
    """A node in an active Capacity Block, in a closed network, with EFA-only interfaces."""
    account = start_account(Settings(region=REGION_WITH_STARTED_BLOCK))
    ec2 = account.aws.client("ec2")
    parameters = {"InstanceType": BLOCK_TYPE, "InstanceCount": 1, "CapacityDurationHours": 24}
    offers = ec2.describe_capacity_block_offerings(**parameters)["CapacityBlockOfferings"]
    earliest = min(offers, key=lambda offer: offer["StartDate"])["CapacityBlockOfferingId"]
    bought = ec2.purchase_capacity_block(CapacityBlockOfferingId=earliest, InstancePlatform="Linux/UNIX")
    reservation = bought["CapacityReservation"]
    neuron = [{"Name": "name", "Values": ["Deep Learning AMI Neuron*"]}]
    return life_of(
        account,
        instance_type=BLOCK_TYPE,
        region=REGION_WITH_STARTED_BLOCK,
        # This region has no parameters for Neuron images.
        ami=ec2.describe_images(Filters=neuron)["Images"][0]["ImageId"],
        capacity="capacity-block",
        reservation_id=reservation["CapacityReservationId"],
        availability_zone_id=reservation["AvailabilityZoneId"],
        egress="none",
        secondary_interface_type="efa-only",
    )


@pytest.fixture(scope="module")
def sharing(account: Account) -> Life:
    """A node that mounts two new file systems."""
    return life_of(account, instance_type="trn1.2xlarge", fsx_lustre=1200, efs="new")


@pytest.fixture(scope="module")
def gpus(account: Account) -> Life:
    """A node with one H100."""
    return life_of(account, instance_type="p5.4xlarge")


def test_node_with_a_gpu_boots_the_gpu_image(account: Account, gpus: Life) -> None:
    (image,) = account.aws.client("ec2").describe_images(ImageIds=[gpus.node["ImageId"]])["Images"]
    assert image["Name"].startswith("Deep Learning OSS Nvidia Driver AMI GPU PyTorch")
    assert [one["InterfaceType"] for one in gpus.node["NetworkInterfaces"]] == ["efa"]


def test_spot_node_is_a_spot_instance(spot: Life) -> None:
    assert spot.node["InstanceLifecycle"] == "spot"


def test_nat_gateway_comes_with_address_and_internet_gateway(spot: Life) -> None:
    kinds = ("NAT gateways", "Elastic IP addresses", "internet gateways")
    assert [len(spot.meanwhile[kind] - spot.before[kind]) for kind in kinds] == [1, 1, 1]


def test_node_of_a_capacity_block_has_the_lifecycle_capacity_block(block: Life) -> None:
    assert block.node["InstanceLifecycle"] == "capacity-block"


def test_node_of_a_capacity_block_has_no_placement_group(block: Life) -> None:
    assert not block.node["Placement"].get("GroupName")
    assert block.meanwhile["placement groups"] == block.before["placement groups"]


def test_efa_only_interface_has_no_address(block: Life) -> None:
    addresses = {one["InterfaceType"]: one.get("PrivateIpAddress") for one in block.node["NetworkInterfaces"]}
    assert addresses == {"efa": block.node["PrivateIpAddress"], "efa-only": None}


def test_closed_network_has_one_vpc_endpoint(block: Life) -> None:
    assert len(block.meanwhile["VPC endpoints"] - block.before["VPC endpoints"]) == 1


def test_new_file_systems_are_created_without_a_backup(sharing: Life) -> None:
    kinds = ("FSx file systems", "EFS file systems", "FSx backups")
    assert [len(sharing.meanwhile[kind] - sharing.before[kind]) for kind in kinds] == [1, 1, 0]


def test_node_has_the_locations_of_its_file_systems(sharing: Life) -> None:
    (lustre,) = sharing.meanwhile["FSx file systems"] - sharing.before["FSx file systems"]
    (efs,) = sharing.meanwhile["EFS file systems"] - sharing.before["EFS file systems"]
    assert f"TRN_LUSTRE_DNS={lustre}.fsx.us-west-2.amazonaws.com\n" in sharing.user_data
    assert f"TRN_EFS_DNS={efs}.efs.us-west-2.amazonaws.com\n" in sharing.user_data
    assert re.search(r"TRN_LUSTRE_MOUNT_NAME=\w{8}\n", sharing.user_data)


@pytest.mark.parametrize("kind", ["spot", "block", "sharing", "gpus"])
def test_cluster_is_deleted_completely(request: pytest.FixtureRequest, kind: str) -> None:
    life: Life = request.getfixturevalue(kind)
    assert differences(life.before, life.after) == []
