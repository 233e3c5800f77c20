"""Calls about file systems: EFS from moto, FSx from stubbed responses."""

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from tests.core.aws_stubs import REGION, stubbed
from trainium_core.aws.account import AwsAccount
from trainium_core.aws.storage import FsxFileSystem, MountTarget

pytestmark = pytest.mark.usefixtures("made_up_credentials")

UNKNOWN = "fs-0123456789abcdef0"
SHOWN = {
    "FileSystemType": "LUSTRE",
    "Lifecycle": "AVAILABLE",
    "VpcId": "vpc-0123456789abcdef0",
    "SubnetIds": ["subnet-0123456789abcdef0"],
    "NetworkInterfaceIds": ["eni-00000001", "eni-00000002"],
    "LustreConfiguration": {"MountName": "abcdefgh"},
}


@pytest.fixture
def target(account: AwsAccount) -> tuple[str, str]:  # noqa: ARG001
    """The IDs of a file system with a mount target, and of the cluster's security group on it."""
    ec2, efs = boto3.client("ec2", REGION), boto3.client("efs", REGION)
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24", AvailabilityZoneId="usw2-az1")["Subnet"]["SubnetId"]
    tags = [{"ResourceType": "security-group", "Tags": [{"Key": "trn:cluster", "Value": "mine"}]}]
    group = ec2.create_security_group(GroupName="nfs", Description="x", VpcId=vpc, TagSpecifications=tags)["GroupId"]
    file_system = efs.create_file_system(CreationToken=vpc)["FileSystemId"]
    efs.create_mount_target(FileSystemId=file_system, SubnetId=subnet, SecurityGroups=[group])
    return file_system, group


def test_mount_target_has_zone_groups_and_their_cluster(account: AwsAccount, target: tuple[str, str]) -> None:
    file_system, group = target
    found = account.storage.efs_file_system(file_system)
    assert found is not None
    assert (found.state, found.only_zone_id) == ("available", None)
    (shown,) = found.mount_targets
    assert shown == MountTarget(
        zone_id="usw2-az1",
        vpc_id=shown.vpc_id,
        state="available",
        security_group_ids=frozenset([group]),
        clusters=frozenset(["mine"]),
    )


def test_unknown_efs_file_system_is_none(account: AwsAccount) -> None:
    assert account.storage.efs_file_system(UNKNOWN) is None


def test_lustre_file_system_has_groups_of_its_interfaces() -> None:
    account, fsx = stubbed("fsx")
    ec2 = Stubber(account.client("ec2"))
    ec2.activate()
    fsx.add_response("describe_file_systems", {"FileSystems": [SHOWN]}, {"FileSystemIds": [UNKNOWN]})
    interfaces: list[dict[str, Any]] = [{"Groups": [{"GroupId": "sg-1"}]}, {"Groups": [{"GroupId": "sg-2"}]}]
    parameters = {"NetworkInterfaceIds": ["eni-00000001", "eni-00000002"]}
    ec2.add_response("describe_network_interfaces", {"NetworkInterfaces": interfaces}, parameters)
    assert account.storage.fsx_file_system(UNKNOWN) == FsxFileSystem(
        file_system_id=UNKNOWN,
        kind="LUSTRE",
        state="AVAILABLE",
        vpc_id="vpc-0123456789abcdef0",
        subnet_id="subnet-0123456789abcdef0",
        mount_name="abcdefgh",
        security_group_ids=frozenset(["sg-1", "sg-2"]),
    )


def test_unknown_fsx_file_system_is_none() -> None:
    account, fsx = stubbed("fsx")
    fsx.add_client_error("describe_file_systems", "FileSystemNotFound", "File system does not exist.")
    assert account.storage.fsx_file_system(UNKNOWN) is None


def test_fsx_file_system_without_interfaces_has_no_groups() -> None:
    account, fsx = stubbed("fsx")
    shown = {**SHOWN, "Lifecycle": "CREATING", "NetworkInterfaceIds": []}
    fsx.add_response("describe_file_systems", {"FileSystems": [shown]}, {"FileSystemIds": [UNKNOWN]})
    Stubber(account.client("ec2")).activate()
    found = account.storage.fsx_file_system(UNKNOWN)
    assert found is not None
    assert found.security_group_ids == frozenset()
