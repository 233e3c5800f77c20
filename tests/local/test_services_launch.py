"""Instances come up as their launch template says, and what AWS refuses is refused."""

import uuid
from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.ec2_network import Network, clear, make_network
from trainium_local.environment import ACCOUNT_ID


@pytest.fixture
def network(embedded_aws: EmbeddedAws) -> Iterator[Network]:
    made = make_network(embedded_aws, zone_id="usw2-az4")
    clear(made)
    yield made
    clear(made)


@pytest.fixture
def name() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


def refusal(error: pytest.ExceptionInfo[ClientError]) -> tuple[str, str]:
    return error.value.response["Error"]["Code"], error.value.response["Error"]["Message"]


def test_each_network_card_has_its_interface(network: Network, name: str) -> None:
    (instance,) = network.run(network.template(name, NetworkInterfaces=network.cards(8)))
    shown = network.instance(instance["InstanceId"])["NetworkInterfaces"]
    places = sorted(
        (i["Attachment"]["NetworkCardIndex"], i["Attachment"]["DeviceIndex"], i["InterfaceType"]) for i in shown
    )
    assert places == [(0, 0, "efa")] + [(card, 1, "efa") for card in range(1, 8)]


def test_every_interface_has_an_address_of_its_own(network: Network, name: str) -> None:
    launched = network.run(network.template(name, NetworkInterfaces=network.cards(8)), count=2)
    addresses = [i["PrivateIpAddress"] for instance in launched for i in instance["NetworkInterfaces"]]
    assert len(set(addresses)) == 16


def test_an_efa_only_interface_takes_no_address(network: Network, name: str) -> None:
    (instance,) = network.run(network.template(name, NetworkInterfaces=network.cards(8, kind="efa-only")))
    shown = network.instance(instance["InstanceId"])["NetworkInterfaces"]
    assert [i.get("PrivateIpAddress") is not None for i in shown].count(True) == 1


def test_interfaces_carry_the_security_groups_of_the_template(network: Network, name: str) -> None:
    (instance,) = network.run(network.template(name, NetworkInterfaces=network.cards(8)))
    groups = {g["GroupId"] for i in instance["NetworkInterfaces"] for g in i["Groups"]}
    assert groups == {network.group}


def test_metadata_options_of_the_template_hold(network: Network, name: str) -> None:
    options = {"HttpTokens": "required", "HttpPutResponseHopLimit": 2}
    (instance,) = network.run(network.template(name, MetadataOptions=options))
    assert options.items() <= network.instance(instance["InstanceId"])["MetadataOptions"].items()


def test_the_tags_of_the_template_reach_instance_volume_and_interface(network: Network, name: str) -> None:
    kinds = ("instance", "volume", "network-interface")
    given = [{"ResourceType": kind, "Tags": [{"Key": "trn:cluster", "Value": name}]} for kind in kinds]
    network.run(network.template(name, TagSpecifications=given, NetworkInterfaces=network.cards(8)))
    tagged = network.ec2.describe_tags(Filters=[{"Name": "tag:trn:cluster", "Values": [name]}])["Tags"]
    assert {tag["ResourceType"] for tag in tagged} == set(kinds)


def test_the_market_of_the_template_is_the_lifecycle_of_the_instance(network: Network, name: str) -> None:
    (instance,) = network.run(network.template(name, InstanceMarketOptions={"MarketType": "spot"}))
    assert network.instance(instance["InstanceId"])["InstanceLifecycle"] == "spot"


def test_an_on_demand_instance_has_no_lifecycle(network: Network, name: str) -> None:
    (instance,) = network.run(network.template(name))
    assert "InstanceLifecycle" not in network.instance(instance["InstanceId"])


def test_the_instance_profile_of_the_template_is_attached(
    embedded_aws: EmbeddedAws, network: Network, name: str
) -> None:
    profile = embedded_aws.client("iam").create_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    (instance,) = network.run(network.template(name, IamInstanceProfile={"Arn": profile["Arn"]}))
    assert network.instance(instance["InstanceId"])["IamInstanceProfile"]["Arn"] == profile["Arn"]


def test_an_unknown_instance_profile_is_refused(network: Network, name: str) -> None:
    with pytest.raises(ClientError) as error:
        network.run(network.template(name, IamInstanceProfile={"Name": "nobody"}))
    assert "iamInstanceProfile.name is invalid" in refusal(error)[1]


def test_a_zone_that_does_not_offer_the_type_refuses_it(embedded_aws: EmbeddedAws, name: str) -> None:
    elsewhere = make_network(embedded_aws, zone_id="usw2-az2")
    with pytest.raises(ClientError) as error:
        elsewhere.run(elsewhere.template(name))
    code, message = refusal(error)
    assert code == "Unsupported"
    assert "choosing us-west-2b, us-west-2d" in message


def test_an_unknown_image_is_refused(network: Network, name: str) -> None:
    with pytest.raises(ClientError) as error:
        network.run(network.template(name, ImageId="ami-00000000000000000"))
    assert refusal(error) == ("InvalidAMIID.NotFound", "The image id '[ami-00000000000000000]' does not exist")


def test_a_network_card_that_the_type_lacks_is_refused(network: Network, name: str) -> None:
    with pytest.raises(ClientError, match="Network card index 8 exceeds the limit"):
        network.run(network.template(name, NetworkInterfaces=network.cards(9)))


def test_efa_on_a_type_without_it_is_refused(network: Network, name: str) -> None:
    template = network.template(name, instance_type="trn1.2xlarge", NetworkInterfaces=network.cards(1))
    with pytest.raises(ClientError, match=r"trn1\.2xlarge instances do not support Elastic Fabric Adapters"):
        network.run(template)


def test_a_public_address_with_several_interfaces_is_refused(network: Network, name: str) -> None:
    cards = network.cards(2)
    cards[0]["AssociatePublicIpAddress"] = True
    with pytest.raises(ClientError, match="cannot be specified when launching with multiple network interfaces"):
        network.run(network.template(name, NetworkInterfaces=cards))


def test_an_efa_only_primary_interface_is_refused(network: Network, name: str) -> None:
    cards = [network.cards(1)[0] | {"InterfaceType": "efa-only"}]
    with pytest.raises(ClientError, match="primary network interface cannot be efa-only"):
        network.run(network.template(name, NetworkInterfaces=cards))


def test_a_placement_group_with_a_capacity_block_is_refused(network: Network, name: str) -> None:
    network.ec2.create_placement_group(GroupName=name, Strategy="cluster")
    template = network.template(
        name, Placement={"GroupName": name}, InstanceMarketOptions={"MarketType": "capacity-block"}
    )
    with pytest.raises(ClientError, match="placement group with a Capacity Block"):
        network.run(template)


def test_a_launch_over_the_quota_is_refused_in_vcpus(network: Network, name: str) -> None:
    template = network.template(name)
    network.run(template, count=2)
    with pytest.raises(ClientError) as error:
        network.run(template)
    code, message = refusal(error)
    assert code == "VcpuLimitExceeded"
    assert "current vCPU limit of 256" in message


def test_terminated_instances_free_their_quota(network: Network, name: str) -> None:
    template = network.template(name)
    gone = network.run(template, count=2)
    network.ec2.terminate_instances(InstanceIds=[instance["InstanceId"] for instance in gone])
    assert len(network.run(template, count=2)) == 2


def test_spot_has_a_quota_of_its_own(network: Network, name: str) -> None:
    network.run(network.template(name), count=2)
    spot = network.template(f"{name}-spot", InstanceMarketOptions={"MarketType": "spot"})
    network.run(spot, count=2)
    with pytest.raises(ClientError) as error:
        network.run(spot)
    assert refusal(error)[0] == "MaxSpotInstanceCountExceeded"


def test_a_subnet_without_free_addresses_refuses(embedded_aws: EmbeddedAws, name: str) -> None:
    small = make_network(embedded_aws, zone_id="usw2-az4", prefix=28)
    with pytest.raises(ClientError) as error:
        small.run(small.template(name, NetworkInterfaces=small.cards(8)), count=2)
    assert refusal(error)[0] == "InsufficientFreeAddressesInSubnet"


def test_tags_can_be_requested_by_key_and_value(network: Network, name: str) -> None:
    network.ec2.create_tags(Resources=[network.vpc], Tags=[{"Key": "trn:cluster", "Value": name}])
    network.ec2.create_tags(Resources=[network.subnet], Tags=[{"Key": "trn:cluster", "Value": "another"}])
    found = network.ec2.describe_tags(Filters=[{"Name": "tag:trn:cluster", "Values": [name]}])["Tags"]
    assert [tag["ResourceId"] for tag in found] == [network.vpc]


def test_snapshots_are_those_of_the_owner_requested(network: Network) -> None:
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


def test_a_terminated_instance_leaves_no_interface_volume_or_tag(network: Network, name: str) -> None:
    kinds = ("instance", "volume", "network-interface")
    given = [{"ResourceType": kind, "Tags": [{"Key": "trn:cluster", "Value": name}]} for kind in kinds]
    root = [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 8, "DeleteOnTermination": True}}]
    template = network.template(
        name, TagSpecifications=given, NetworkInterfaces=network.cards(8), BlockDeviceMappings=root
    )
    (instance,) = network.run(template)
    network.ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    subnet = [{"Name": "subnet-id", "Values": [network.subnet]}]
    assert network.ec2.describe_network_interfaces(Filters=subnet)["NetworkInterfaces"] == []
    assert network.ec2.describe_tags(Filters=[{"Name": "tag:trn:cluster", "Values": [name]}])["Tags"] == []


@pytest.mark.parametrize(
    ("pattern", "found"), [("trn*", 1), ("trn1.32xlarg?", 1), ("trn1.32xlarge", 1), ("trn", 0), ("inf*", 0)]
)
def test_instances_can_be_filtered_with_wildcards(network: Network, name: str, pattern: str, found: int) -> None:
    (instance,) = network.run(network.template(name))
    by_type = [{"Name": "instance-type", "Values": [pattern]}, {"Name": "instance-state-name", "Values": ["running"]}]
    pages = network.ec2.get_paginator("describe_instances").paginate(Filters=by_type)
    ids = [i["InstanceId"] for page in pages for r in page["Reservations"] for i in r["Instances"]]
    assert ids.count(instance["InstanceId"]) == found


def test_the_root_volume_is_the_one_of_the_template(network: Network, name: str) -> None:
    volume = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 500, "VolumeType": "gp3", "Encrypted": True}}
    (instance,) = network.run(network.template(name, BlockDeviceMappings=[volume]))
    attached = [{"Name": "attachment.instance-id", "Values": [instance["InstanceId"]]}]
    volumes = network.ec2.describe_volumes(Filters=attached)["Volumes"]
    assert [(v["Size"], v["VolumeType"], v["Encrypted"]) for v in volumes] == [(500, "gp3", True)]


def test_a_placement_group_in_use_cannot_be_deleted(network: Network, name: str) -> None:
    network.ec2.create_placement_group(GroupName=name, Strategy="cluster")
    (instance,) = network.run(network.template(name, Placement={"GroupName": name}))
    with pytest.raises(ClientError) as error:
        network.ec2.delete_placement_group(GroupName=name)
    assert refusal(error)[0] == "InvalidPlacementGroup.InUse"
    network.ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    network.ec2.delete_placement_group(GroupName=name)
    with pytest.raises(ClientError, match="is unknown"):
        network.ec2.describe_placement_groups(GroupNames=[name])


def test_a_placement_group_of_that_name_exists_once(network: Network, name: str) -> None:
    network.ec2.create_placement_group(GroupName=name, Strategy="cluster")
    with pytest.raises(ClientError, match="already exists"):
        network.ec2.create_placement_group(GroupName=name, Strategy="cluster")
    network.ec2.delete_placement_group(GroupName=name)


def test_a_deleted_nat_gateway_leaves_no_interface(network: Network) -> None:
    address = network.ec2.allocate_address(Domain="vpc")["AllocationId"]
    gateway = network.ec2.create_nat_gateway(SubnetId=network.subnet, AllocationId=address)["NatGateway"][
        "NatGatewayId"
    ]
    network.ec2.delete_nat_gateway(NatGatewayId=gateway)
    subnet = [{"Name": "subnet-id", "Values": [network.subnet]}]
    assert network.ec2.describe_network_interfaces(Filters=subnet)["NetworkInterfaces"] == []


def test_a_deleted_vpc_endpoint_is_no_longer_shown(network: Network) -> None:
    made = network.ec2.create_vpc_endpoint(VpcId=network.vpc, ServiceName="com.amazonaws.us-west-2.s3")
    endpoint = made["VpcEndpoint"]["VpcEndpointId"]
    network.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])
    vpc = [{"Name": "vpc-id", "Values": [network.vpc]}]
    assert network.ec2.describe_vpc_endpoints(Filters=vpc)["VpcEndpoints"] == []


def test_a_deleted_vpc_leaves_no_network_acl(embedded_aws: EmbeddedAws) -> None:
    ec2 = embedded_aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    acls = [{"Name": "vpc-id", "Values": [vpc]}]
    assert len(ec2.describe_network_acls(Filters=acls)["NetworkAcls"]) == 1
    ec2.delete_vpc(VpcId=vpc)
    assert ec2.describe_network_acls(Filters=acls)["NetworkAcls"] == []


def test_new_volumes_are_encrypted_with_the_key_of_aws_by_default(embedded_aws: EmbeddedAws) -> None:
    ec2, kms = embedded_aws.client("ec2", "sa-east-1"), embedded_aws.client("kms", "sa-east-1")
    assert ec2.get_ebs_default_kms_key_id()["KmsKeyId"] == "alias/aws/ebs"
    own = kms.create_key()["KeyMetadata"]["Arn"]
    ec2.modify_ebs_default_kms_key_id(KmsKeyId=own)
    assert ec2.get_ebs_default_kms_key_id()["KmsKeyId"] == own
