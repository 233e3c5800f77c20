"""FSx for Lustre and EFS: responses, errors, updates and network interfaces."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, template

LUSTRE = {"FileSystemType": "LUSTRE", "StorageCapacity": 1200}
UNKNOWN = "fs-0123456789abcdef0"


@pytest.fixture(scope="module")
def subnet(embedded_aws: EmbeddedAws) -> Iterator[dict[str, Any]]:
    ec2 = embedded_aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24")["Subnet"]
    yield made
    ec2.delete_subnet(SubnetId=made["SubnetId"])
    ec2.delete_vpc(VpcId=vpc)


@pytest.fixture
def group(embedded_aws: EmbeddedAws, subnet: dict[str, Any]) -> Iterator[str]:
    ec2 = embedded_aws.client("ec2")
    made = ec2.create_security_group(GroupName="lustre", Description="of a test", VpcId=subnet["VpcId"])["GroupId"]
    yield made
    ec2.delete_security_group(GroupId=made)


def open_port(aws: EmbeddedAws, group: str, first: int, last: int) -> None:
    source = [{"GroupId": group}]
    rule = {"IpProtocol": "tcp", "FromPort": first, "ToPort": last, "UserIdGroupPairs": source}
    aws.client("ec2").authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])


def interfaces(aws: EmbeddedAws, subnet: dict[str, Any]) -> list[dict[str, Any]]:
    in_subnet = [{"Name": "subnet-id", "Values": [subnet["SubnetId"]]}]
    return aws.client("ec2").describe_network_interfaces(Filters=in_subnet)["NetworkInterfaces"]


def test_lustre_file_system_has_state_and_mount_name_and_its_deletion_removes_its_interface(
    embedded_aws: EmbeddedAws, subnet: dict[str, Any], group: str
) -> None:
    fsx = embedded_aws.client("fsx")
    open_port(embedded_aws, group, 988, 988)
    made = fsx.create_file_system(
        **LUSTRE, SubnetIds=[subnet["SubnetId"]], SecurityGroupIds=[group], FileSystemTypeVersion="2.15"
    )["FileSystem"]
    (shown,) = fsx.describe_file_systems(FileSystemIds=[made["FileSystemId"]])["FileSystems"]
    (interface,) = interfaces(embedded_aws, subnet)
    assert (shown["Lifecycle"], shown["VpcId"], shown["FileSystemTypeVersion"]) == (
        "AVAILABLE",
        subnet["VpcId"],
        "2.15",
    )
    assert shown["NetworkInterfaceIds"] == [interface["NetworkInterfaceId"]]
    assert [one["GroupId"] for one in interface["Groups"]] == [group]
    assert shown["LustreConfiguration"]["MountName"] == made["LustreConfiguration"]["MountName"]
    fsx.delete_file_system(FileSystemId=made["FileSystemId"])
    assert not interfaces(embedded_aws, subnet)


@pytest.mark.parametrize(("service", "argument"), [("fsx", "FileSystemIds"), ("efs", "FileSystemId")])
def test_unknown_file_system_is_an_error(embedded_aws: EmbeddedAws, service: str, argument: str) -> None:
    parameters = {argument: [UNKNOWN] if argument.endswith("s") else UNKNOWN}
    with pytest.raises(ClientError, match="FileSystemNotFound"):
        embedded_aws.client(service).describe_file_systems(**parameters)


@pytest.mark.parametrize("status", ["ENABLED", "DISABLED"])
def test_backup_policy_of_template_is_applied(embedded_aws: EmbeddedAws, status: str) -> None:
    stacks = Stacks(embedded_aws)
    properties = {"BackupPolicy": {"Status": status}}
    name = stacks.deploy(template({"X": {"Type": "AWS::EFS::FileSystem", "Properties": properties}}))
    efs, file_system = embedded_aws.client("efs"), stacks.physical_id(name, "X")
    if status == "ENABLED":
        assert efs.describe_backup_policy(FileSystemId=file_system)["BackupPolicy"]["Status"] == status
    else:
        with pytest.raises(ClientError, match="PolicyNotFound"):
            efs.describe_backup_policy(FileSystemId=file_system)
    assert stacks.delete(name) == "DELETE_COMPLETE"


def _lustre(**properties: Any) -> dict[str, Any]:
    network = {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.3.0.0/16"}},
        "Subnet": {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.3.0.0/24"}},
    }
    configuration = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125}
    merged = {"FileSystemType": "LUSTRE", "SubnetIds": [{"Ref": "Subnet"}], "StorageCapacity": 1200} | properties
    merged["LustreConfiguration"] = configuration | properties.get("LustreConfiguration", {})
    return template({**network, "X": {"Type": "AWS::FSx::FileSystem", "Properties": merged}})


def test_lustre_update_grows_file_system_in_place(embedded_aws: EmbeddedAws) -> None:
    stacks, fsx = Stacks(embedded_aws), embedded_aws.client("fsx")
    name = stacks.deploy(_lustre())
    file_system = stacks.physical_id(name, "X")
    changes = {"PerUnitStorageThroughput": 500, "WeeklyMaintenanceStartTime": "3:04:30"}
    assert stacks.update(name, _lustre(StorageCapacity=4800, LustreConfiguration=changes)) == "UPDATE_COMPLETE"
    (shown,) = fsx.describe_file_systems(FileSystemIds=[file_system])["FileSystems"]
    assert shown["StorageCapacity"] == 4800
    assert shown["LustreConfiguration"].items() >= changes.items()


@pytest.mark.parametrize(
    "change",
    [{"StorageCapacity": 1200}, {"StorageCapacity": 3000}, {"LustreConfiguration": {"PerUnitStorageThroughput": 100}}],
    ids=str,
)
def test_refused_lustre_update_rolls_back(change: dict[str, Any], embedded_aws: EmbeddedAws) -> None:
    stacks, fsx = Stacks(embedded_aws), embedded_aws.client("fsx")
    name = stacks.deploy(_lustre(StorageCapacity=2400))
    wanted = _lustre(**{"StorageCapacity": 2400} | change)
    assert stacks.update(name, wanted) == "UPDATE_ROLLBACK_COMPLETE", stacks.failures(name)
    (shown,) = fsx.describe_file_systems(FileSystemIds=[stacks.physical_id(name, "X")])["FileSystems"]
    assert shown["StorageCapacity"] == 2400


def test_lustre_deployment_type_change_replaces_file_system(embedded_aws: EmbeddedAws) -> None:
    stacks = Stacks(embedded_aws)
    name = stacks.deploy(_lustre())
    before = stacks.physical_id(name, "X")
    changed = _lustre(LustreConfiguration={"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": None})
    del changed["Resources"]["X"]["Properties"]["LustreConfiguration"]["PerUnitStorageThroughput"]
    assert stacks.update(name, changed) == "UPDATE_COMPLETE", stacks.failures(name)
    assert stacks.physical_id(name, "X") != before


def test_efs_throughput_changes_in_place(embedded_aws: EmbeddedAws) -> None:
    stacks, efs = Stacks(embedded_aws), embedded_aws.client("efs")

    def file_system(**properties: Any) -> dict[str, Any]:
        return template({"X": {"Type": "AWS::EFS::FileSystem", "Properties": properties}})

    name = stacks.deploy(file_system())
    file_system_id = stacks.physical_id(name, "X")
    provisioned = {"ThroughputMode": "provisioned", "ProvisionedThroughputInMibps": 64}
    assert stacks.update(name, file_system(**provisioned)) == "UPDATE_COMPLETE"
    assert stacks.physical_id(name, "X") == file_system_id
    (shown,) = efs.describe_file_systems(FileSystemId=file_system_id)["FileSystems"]
    assert shown.items() >= provisioned.items()
    assert stacks.update(name, file_system(ThroughputMode="elastic")) == "UPDATE_COMPLETE", stacks.failures(name)
    wrong = file_system(ThroughputMode="bursting", ProvisionedThroughputInMibps=64)
    assert stacks.update(name, wrong) == "UPDATE_ROLLBACK_COMPLETE"
