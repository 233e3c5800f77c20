"""EC2: launches from launch templates, refusals, filters and deletions."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.ec2_network import Network, make_network
from trainium_local.environment import ACCOUNT_ID


def refusal(error: pytest.ExceptionInfo[ClientError]) -> tuple[str, str]:
    return error.value.response["Error"]["Code"], error.value.response["Error"]["Message"]


TAGGED = ("instance", "volume", "network-interface")


def tags(name: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": [{"Key": "trn:cluster", "Value": name}]} for kind in TAGGED]


def test_each_network_card_has_interface_address_group_and_tags(network: Network, name: str) -> None:
    template = network.template(name, TagSpecifications=tags(name), NetworkInterfaces=network.cards(8))
    shown = [
        i for one in network.run(template, count=2) for i in network.instance(one["InstanceId"])["NetworkInterfaces"]
    ]
    places = sorted(
        (i["Attachment"]["NetworkCardIndex"], i["Attachment"]["DeviceIndex"], i["InterfaceType"]) for i in shown
    )
    assert places == sorted(2 * [(0, 0, "efa"), *((card, 1, "efa") for card in range(1, 8))])
    assert len({i["PrivateIpAddress"] for i in shown}) == 16
    assert {g["GroupId"] for i in shown for g in i["Groups"]} == {network.group}
    tagged = network.ec2.describe_tags(Filters=[{"Name": "tag:trn:cluster", "Values": [name]}])["Tags"]
    assert {tag["ResourceType"] for tag in tagged} == set(TAGGED)


def test_efa_only_interface_uses_no_address(network: Network, name: str) -> None:
    (instance,) = network.run(network.template(name, NetworkInterfaces=network.cards(8, kind="efa-only")))
    shown = network.instance(instance["InstanceId"])["NetworkInterfaces"]
    assert [i.get("PrivateIpAddress") is not None for i in shown].count(True) == 1


def test_instance_has_settings_of_its_template(embedded_aws: EmbeddedAws, network: Network, name: str) -> None:
    profile = embedded_aws.client("iam").create_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    options = {"HttpTokens": "required", "HttpPutResponseHopLimit": 2}
    volume = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 500, "VolumeType": "gp3", "Encrypted": True}}
    template = network.template(
        name,
        MetadataOptions=options,
        InstanceMarketOptions={"MarketType": "spot"},
        IamInstanceProfile={"Arn": profile["Arn"]},
        BlockDeviceMappings=[volume],
    )
    (instance,) = network.run(template)
    shown = network.instance(instance["InstanceId"])
    assert options.items() <= shown["MetadataOptions"].items()
    assert shown["InstanceLifecycle"] == "spot"
    assert shown["IamInstanceProfile"]["Arn"] == profile["Arn"]
    attached = [{"Name": "attachment.instance-id", "Values": [instance["InstanceId"]]}]
    volumes = network.ec2.describe_volumes(Filters=attached)["Volumes"]
    shown = [(v["Size"], v["VolumeType"], v["Encrypted"], v["Throughput"]) for v in volumes]
    assert shown == [(500, "gp3", True, 125)]


def test_zone_that_does_not_offer_the_type_refuses_launch(embedded_aws: EmbeddedAws, name: str) -> None:
    elsewhere = make_network(embedded_aws, zone_id="usw2-az2")
    with pytest.raises(ClientError) as error:
        elsewhere.run(elsewhere.template(name))
    code, message = refusal(error)
    assert code == "Unsupported"
    assert "choosing us-west-2b, us-west-2d" in message


def test_placement_group_with_capacity_block_is_refused(network: Network, name: str) -> None:
    network.ec2.create_placement_group(GroupName=name, Strategy="cluster")
    template = network.template(
        name, Placement={"GroupName": name}, InstanceMarketOptions={"MarketType": "capacity-block"}
    )
    with pytest.raises(ClientError, match="placement group with a Capacity Block"):
        network.run(template)


def test_launch_over_quota_is_refused_until_instances_end(network: Network, name: str) -> None:
    template = network.template(name)
    launched = network.run(template, count=2)
    assert "InstanceLifecycle" not in network.instance(launched[0]["InstanceId"])
    with pytest.raises(ClientError) as error:
        network.run(template)
    code, message = refusal(error)
    assert code == "VcpuLimitExceeded"
    assert "current vCPU limit of 256" in message
    network.ec2.terminate_instances(InstanceIds=[instance["InstanceId"] for instance in launched])
    assert len(network.run(template, count=2)) == 2


def test_spot_has_a_separate_quota(network: Network, name: str) -> None:
    network.run(network.template(name), count=2)
    spot = network.template(f"{name}-spot", InstanceMarketOptions={"MarketType": "spot"})
    network.run(spot, count=2)
    with pytest.raises(ClientError) as error:
        network.run(spot)
    assert refusal(error)[0] == "MaxSpotInstanceCountExceeded"


def test_subnet_without_free_addresses_refuses_launch(embedded_aws: EmbeddedAws, name: str) -> None:
    small = make_network(embedded_aws, zone_id="usw2-az4", prefix=28)
    with pytest.raises(ClientError) as error:
        small.run(small.template(name, NetworkInterfaces=small.cards(8)), count=2)
    assert refusal(error)[0] == "InsufficientFreeAddressesInSubnet"


def test_tags_can_be_filtered_by_key_and_value(network: Network, name: str) -> None:
    network.ec2.create_tags(Resources=[network.vpc], Tags=[{"Key": "trn:cluster", "Value": name}])
    network.ec2.create_tags(Resources=[network.subnet], Tags=[{"Key": "trn:cluster", "Value": "another"}])
    found = network.ec2.describe_tags(Filters=[{"Name": "tag:trn:cluster", "Values": [name]}])["Tags"]
    assert [tag["ResourceId"] for tag in found] == [network.vpc]


def test_snapshots_are_filtered_by_owner(network: Network) -> None:
    volume = network.ec2.create_volume(AvailabilityZone=f"{network.ec2.meta.region_name}a", Size=1)["VolumeId"]
    own = network.ec2.create_snapshot(VolumeId=volume)["SnapshotId"]
    try:
        found = network.ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]
        assert own in {one["SnapshotId"] for one in found}
        assert {one["OwnerId"] for one in found} == {ACCOUNT_ID}
        assert len(network.ec2.describe_snapshots()["Snapshots"]) > len(found)
    finally:
        network.ec2.delete_snapshot(SnapshotId=own)
        network.ec2.delete_volume(VolumeId=volume)


def test_terminated_instance_leaves_no_interface_volume_or_tag(network: Network, name: str) -> None:
    root = [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 8, "DeleteOnTermination": True}}]
    template = network.template(
        name, TagSpecifications=tags(name), NetworkInterfaces=network.cards(8), BlockDeviceMappings=root
    )
    (instance,) = network.run(template)
    network.ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    subnet = [{"Name": "subnet-id", "Values": [network.subnet]}]
    assert network.ec2.describe_network_interfaces(Filters=subnet)["NetworkInterfaces"] == []
    assert network.ec2.describe_tags(Filters=[{"Name": "tag:trn:cluster", "Values": [name]}])["Tags"] == []


def test_instances_can_be_filtered_with_wildcards(network: Network, name: str) -> None:
    (instance,) = network.run(network.template(name))
    for pattern, found in {"trn*": 1, "trn1.32xlarg?": 1, "trn1.32xlarge": 1, "trn": 0, "inf*": 0}.items():
        wanted = {"instance-type": pattern, "instance-state-name": "running"}
        filters = [{"Name": key, "Values": [value]} for key, value in wanted.items()]
        pages = network.ec2.get_paginator("describe_instances").paginate(Filters=filters)
        ids = [i["InstanceId"] for page in pages for r in page["Reservations"] for i in r["Instances"]]
        assert ids.count(instance["InstanceId"]) == found, pattern


def test_placement_group_in_use_cannot_be_deleted(network: Network, name: str) -> None:
    network.ec2.create_placement_group(GroupName=name, Strategy="cluster")
    with pytest.raises(ClientError, match="already exists"):
        network.ec2.create_placement_group(GroupName=name, Strategy="cluster")
    (instance,) = network.run(network.template(name, Placement={"GroupName": name}))
    with pytest.raises(ClientError) as error:
        network.ec2.delete_placement_group(GroupName=name)
    assert refusal(error)[0] == "InvalidPlacementGroup.InUse"
    network.ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    network.ec2.delete_placement_group(GroupName=name)
    with pytest.raises(ClientError, match="is unknown"):
        network.ec2.describe_placement_groups(GroupNames=[name])


def test_spread_placement_group_has_at_most_seven_instances(network: Network, name: str) -> None:
    network.ec2.create_placement_group(GroupName=name, Strategy="spread")
    template = network.template(name, "t3.micro", Placement={"GroupName": name})
    with pytest.raises(ClientError, match="at most seven running instances"):
        network.run(template, count=8)
    network.run(template, count=7)
    with pytest.raises(ClientError, match="at most seven running instances"):
        network.run(template)


def test_partition_number_zero_is_refused(network: Network, name: str) -> None:
    network.ec2.create_placement_group(GroupName=name, Strategy="partition", PartitionCount=3)
    template = network.template(name, Placement={"GroupName": name})
    with pytest.raises(ClientError, match="PartitionNumber can be specified"):
        network.run(template, Placement={"GroupName": name, "PartitionNumber": 0})


def test_interfaces_with_named_security_groups_are_refused(network: Network, name: str) -> None:
    template = network.template(name, NetworkInterfaces=network.cards(1))
    with pytest.raises(ClientError, match="may not be specified on the same request"):
        network.run(template, SecurityGroups=["nodes"])


def test_deleted_nat_gateway_endpoint_and_vpc_leave_nothing(network: Network) -> None:
    address = network.ec2.allocate_address(Domain="vpc")["AllocationId"]
    gateway = network.ec2.create_nat_gateway(SubnetId=network.subnet, AllocationId=address)["NatGateway"]
    network.ec2.delete_nat_gateway(NatGatewayId=gateway["NatGatewayId"])
    subnet = [{"Name": "subnet-id", "Values": [network.subnet]}]
    assert network.ec2.describe_network_interfaces(Filters=subnet)["NetworkInterfaces"] == []
    made = network.ec2.create_vpc_endpoint(VpcId=network.vpc, ServiceName="com.amazonaws.us-west-2.s3")
    network.ec2.delete_vpc_endpoints(VpcEndpointIds=[made["VpcEndpoint"]["VpcEndpointId"]])
    of_vpc = [{"Name": "vpc-id", "Values": [network.vpc]}]
    assert network.ec2.describe_vpc_endpoints(Filters=of_vpc)["VpcEndpoints"] == []
    vpc = network.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    network.ec2.delete_vpc(VpcId=vpc)
    assert network.ec2.describe_network_acls(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["NetworkAcls"] == []


def test_default_kms_key_of_ebs_is_the_aws_managed_one_until_set(embedded_aws: EmbeddedAws) -> None:
    ec2, kms = embedded_aws.client("ec2", "sa-east-1"), embedded_aws.client("kms", "sa-east-1")
    assert ec2.get_ebs_default_kms_key_id()["KmsKeyId"] == "alias/aws/ebs"
    ec2.create_volume(AvailabilityZone="sa-east-1a", Size=1, Encrypted=True)
    assert ec2.get_ebs_default_kms_key_id()["KmsKeyId"] == "alias/aws/ebs"
    own = kms.create_key()["KeyMetadata"]["Arn"]
    ec2.modify_ebs_default_kms_key_id(KmsKeyId=own)
    assert ec2.get_ebs_default_kms_key_id()["KmsKeyId"] == own
