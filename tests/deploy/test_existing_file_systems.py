"""Existing file systems, and file systems that are retained after a cluster."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.constructs.synth import cluster_template
from tests.deploy.account import Account, differences
from tools.demo.inventory import Inventory

SMALL: Mapping[str, Any] = {"nodes": 1, "instance_type": "trn1.2xlarge"}


@pytest.fixture(scope="module")
def before(account: Account) -> Inventory:
    return account.inventory()


@pytest.fixture(scope="module")
def retained_efs(account: Account, before: Inventory) -> Iterator[str]:
    """The EFS file system that a cluster left."""
    template = cluster_template(**SMALL, efs="new", file_systems_at_destroy="retain")
    account.deploy(template)
    account.destroy()
    (file_system,) = account.inventory()["EFS file systems"] - before["EFS file systems"]
    yield file_system
    account.aws.client("efs").delete_file_system(FileSystemId=file_system)


def test_only_the_efs_file_system_outlives_its_cluster(account: Account, before: Inventory, retained_efs: str) -> None:
    left = differences(before, account.inventory())
    assert left[0] == f"+ EFS file systems: {retained_efs}"
    assert all(retained_efs in line for line in left), left


def test_later_cluster_mounts_retained_efs_and_leaves_it_unchanged(account: Account, retained_efs: str) -> None:
    before, template = account.inventory(), cluster_template(**SMALL, efs=retained_efs)
    account.deploy(template)
    (target,) = account.aws.client("efs").describe_mount_targets(FileSystemId=retained_efs)["MountTargets"]
    (node,) = account.cluster().instances
    assert target["SubnetId"] == node["SubnetId"]
    account.destroy()
    assert differences(before, account.inventory()) == []


@pytest.fixture(scope="module")
def own_network(account: Account) -> Iterator[Mapping[str, str]]:
    """A VPC with a subnet, and a security group that allows all traffic from itself."""
    ec2 = account.aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24", AvailabilityZoneId="usw2-az4")["Subnet"]["SubnetId"]
    main = [{"Name": "vpc-id", "Values": [vpc]}]
    table = ec2.describe_route_tables(Filters=main)["RouteTables"][0]["RouteTableId"]
    group = ec2.create_security_group(GroupName="file-systems", Description="of a test", VpcId=vpc)["GroupId"]
    from_itself = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[from_itself])
    yield {"vpc_id": vpc, "subnet_id": subnet, "route_table_id": table, "group": group}
    ec2.delete_security_group(GroupId=group)
    ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_vpc(VpcId=vpc)


@pytest.fixture(scope="module")
def existing(account: Account, own_network: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """Settings that name a Lustre and an EFS file system in the network."""
    fsx, efs = account.aws.client("fsx"), account.aws.client("efs")
    subnet, group = own_network["subnet_id"], own_network["group"]
    request = {"FileSystemType": "LUSTRE", "StorageCapacity": 1200, "SubnetIds": [subnet], "SecurityGroupIds": [group]}
    lustre = fsx.create_file_system(**request)["FileSystem"]
    shared = efs.create_file_system(CreationToken="of a test")["FileSystemId"]
    target = efs.create_mount_target(FileSystemId=shared, SubnetId=subnet, SecurityGroups=[group])["MountTargetId"]
    yield {
        **{key: value for key, value in own_network.items() if key != "group"},
        "fsx_lustre": lustre["FileSystemId"],
        "fsx_lustre_mount_name": lustre["LustreConfiguration"]["MountName"],
        "fsx_lustre_security_group": group,
        "efs": shared,
        "efs_security_group": group,
    }
    efs.delete_mount_target(MountTargetId=target)
    efs.delete_file_system(FileSystemId=shared)
    fsx.delete_file_system(FileSystemId=lustre["FileSystemId"])


def ingress_rules(account: Account, group: str) -> set[tuple[int, str]]:
    """The first port and the source of each ingress rule."""
    (security_group,) = account.aws.client("ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"]
    return {
        (rule.get("FromPort", -1), source["GroupId"])
        for rule in security_group["IpPermissions"]
        for source in rule["UserIdGroupPairs"]
    }


def test_existing_file_system_admits_nodes_only_while_they_exist(account: Account, existing: Mapping[str, Any]) -> None:
    group = existing["efs_security_group"]
    before, rules = account.inventory(), ingress_rules(account, group)
    template = cluster_template(**SMALL, **existing)
    account.deploy(template)
    (node,) = account.cluster().instances
    nodes = {one["GroupId"] for one in node["SecurityGroups"]}
    assert ingress_rules(account, group) - rules == {(port, one) for port in (988, 1018, 2049) for one in nodes}
    account.destroy()
    assert ingress_rules(account, group) == rules
    assert differences(before, account.inventory()) == []
