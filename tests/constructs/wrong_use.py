"""Wrong uses of fleets, each with the parameter that is named and a part of what is said to do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import count
from typing import Any

from aws_cdk import Aws, Duration, Environment, Size, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from tests.constructs.synth import REGION, new_app
from trainium_cdk import (
    Capacity,
    ClusterNetwork,
    CompileCache,
    ElasticFileSystem,
    NeuronFleet,
    NodeRecords,
    SetupScript,
    SleepSwitch,
)

BUCKET = "my-cache"
TRN1, TRN1_SMALL = "trn1.32xlarge", "trn1.2xlarge"
_numbers = count()


@dataclass(frozen=True)
class Place:
    """What the cases share: making a VPC for each would take seconds."""

    stack: Stack
    vpc: ec2.Vpc
    other_vpc: ec2.Vpc
    elsewhere: Stack


@cache
def place() -> Place:
    app = new_app()
    stack = Stack(app, "Web", env=Environment(region=REGION))
    zones = ["us-west-2a", "us-west-2b"]
    return Place(
        stack=stack,
        vpc=ec2.Vpc(stack, "Vpc", availability_zones=zones, nat_gateways=1),
        other_vpc=ec2.Vpc(stack, "Other", availability_zones=zones[:1], nat_gateways=1),
        elsewhere=Stack(app, "East", env=Environment(region="us-east-1")),
    )


def fleet(**props: Any) -> None:
    scope = props.pop("scope", place().stack)
    given: dict[str, Any] = {"instance_type": ec2.InstanceType(TRN1), "vpc": place().vpc, **props}
    NeuronFleet(scope, f"Fleet{next(_numbers)}", **given)


def unique(name: str) -> str:
    """An id that no other construct of the place has."""
    return f"{name}{next(_numbers)}"


def a_group_of_another_vpc() -> ec2.ISecurityGroup:
    return ec2.SecurityGroup(place().stack, f"Group{next(_numbers)}", vpc=place().other_vpc)


def role_of(service: str) -> iam.Role:
    principal: Any = iam.ServicePrincipal(service)
    return iam.Role(place().stack, f"Role{next(_numbers)}", assumed_by=principal)


def stack_in(region: str) -> Stack:
    app: Any = place().stack.node.root
    return Stack(app, f"S{next(_numbers)}", env=Environment(region=region))


def some_bucket() -> s3.IBucket:
    return s3.Bucket.from_bucket_name(place().stack, f"Bucket{next(_numbers)}", BUCKET)


def an_efs(vpc: ec2.Vpc | None = None) -> ElasticFileSystem:
    vpc = vpc or place().vpc
    return ElasticFileSystem(place().stack, f"Efs{next(_numbers)}", vpc=vpc, subnet=vpc.private_subnets[0])


def a_group_by_its_id() -> ec2.ISecurityGroup:
    return ec2.SecurityGroup.from_security_group_id(place().stack, f"Group{next(_numbers)}", "sg-0123456789abcdef0")


def subnet_by_its_id() -> ec2.ISubnet:
    return ec2.Subnet.from_subnet_id(place().stack, f"Subnet{next(_numbers)}", "subnet-0123456789abcdef0")


def placement_group(strategy: ec2.PlacementGroupStrategy) -> ec2.PlacementGroup:
    return ec2.PlacementGroup(place().stack, f"Placement{next(_numbers)}", strategy=strategy)


def key_by_its_arn(region: str, key: str = "key/12345678-1234-1234-1234-123456789012") -> kms.IKey:
    return kms.Key.from_key_arn(place().stack, f"Key{next(_numbers)}", f"arn:aws:kms:{region}:111122223333:{key}")


def volume(gib: int, *, name: str = "/dev/sdf", **options: Any) -> ec2.BlockDevice:
    return ec2.BlockDevice(device_name=name, volume=ec2.BlockDeviceVolume.ebs(gib, **options))


ZONE_B = ec2.SubnetSelection(availability_zones=["us-west-2b"])
NUMBER = Token.as_number({"Ref": "Nodes"})

FLEETS: Mapping[str, tuple[Callable[[], Mapping[str, Any]], str, str]] = {
    "type as text": (lambda: {"instance_type": TRN1}, "instance_type", "give an ec2.InstanceType"),
    "type None": (lambda: {"instance_type": None}, "instance_type", "give an ec2.InstanceType"),
    "unknown type": (lambda: {"instance_type": ec2.InstanceType("trn1.32xlrge")}, "instance_type", "write trn1.32x"),
    "GPU type": (lambda: {"instance_type": ec2.InstanceType("p5.48xlarge")}, "instance_type", "with Trainium devices"),
    "type token": (lambda: {"instance_type": ec2.InstanceType(Aws.STACK_NAME)}, "instance_type", "the value itself"),
    "no node": (lambda: {"nodes": 0}, "nodes", "a whole number, 1 or more"),
    "negative nodes": (lambda: {"nodes": -2}, "nodes", "a whole number, 1 or more"),
    "nodes as text": (lambda: {"nodes": "2"}, "nodes", "give 2, of type int"),
    "half a node": (lambda: {"nodes": 1.5}, "nodes", "write the number in digits"),
    "nodes token": (lambda: {"nodes": NUMBER}, "nodes", "give the value itself"),
    "nodes True": (lambda: {"nodes": True}, "nodes", "a whole number"),
    "nodes without EFA": (
        lambda: {"instance_type": ec2.InstanceType(TRN1_SMALL), "nodes": 2},
        "nodes",
        "has no EFA",
    ),
    "more nodes than addresses": (lambda: {"nodes": 100_000}, "nodes", "secondary_interface_type=efa-only"),
    "capital letters in a name": (lambda: {"cluster_name": "Web"}, "cluster_name", "lower-case letters"),
    "name of 33 letters": (lambda: {"cluster_name": "a" * 33}, "cluster_name", "1 to 32"),
    "empty name": (lambda: {"cluster_name": ""}, "cluster_name", "1 to 32"),
    "name token": (lambda: {"cluster_name": Aws.STACK_NAME}, "cluster_name", "give the value itself"),
    "capacity as text": (lambda: {"capacity": "spot"}, "capacity", "give a Capacity, such as"),
    "capacity class": (lambda: {"capacity": Capacity}, "capacity", "give a Capacity, such as"),
    "block without id": (
        lambda: {"capacity": Capacity("capacity-block", None)},
        "capacity",
        "bought before: give its id",
    ),
    "id of no reservation": (lambda: {"capacity": Capacity.reservation("r-1")}, "capacity", "such as cr-0123"),
    "reservation token": (
        lambda: {"capacity": Capacity.reservation(Aws.STACK_ID)},
        "capacity",
        "give the value itself",
    ),
    "type not sold so": (
        lambda: {"instance_type": ec2.InstanceType("trn2.48xlarge"), "capacity": Capacity.spot()},
        "the region of the stack",
        "a region that offers trn2.48xlarge",
    ),
    "vpc None": (lambda: {"vpc": None}, "vpc", "give an ec2.IVpc"),
    "vpc id": (lambda: {"vpc": "vpc-0123456789abcdef0"}, "vpc", "give an ec2.IVpc"),
    "network for its vpc": (lambda: {"vpc": ClusterNetwork}, "vpc", "give an ec2.IVpc"),
    "subnet for a selection": (
        lambda: {"vpc_subnets": place().vpc.private_subnets[0]},
        "vpc_subnets",
        "SubnetSelection(subnets=[subnet])",
    ),
    "list for a selection": (lambda: {"vpc_subnets": place().vpc.private_subnets}, "vpc_subnets", "SubnetSelection"),
    "zone id for a name": (
        lambda: {"vpc_subnets": ec2.SubnetSelection(availability_zones=["usw2-az4"])},
        "vpc_subnets",
        "the name that your account has",
    ),
    "zone that the VPC has not": (
        lambda: {"vpc_subnets": ec2.SubnetSelection(availability_zones=["us-west-2d"])},
        "vpc_subnets",
        "us-west-2a, us-west-2b",
    ),
    "group that the VPC has not": (
        lambda: {"vpc_subnets": ec2.SubnetSelection(subnet_group_name="Nodes")},
        "vpc_subnets",
        "There are no subnet groups",
    ),
    "subnet of another VPC": (
        lambda: {"vpc_subnets": ec2.SubnetSelection(subnets=[place().other_vpc.private_subnets[0]])},
        "vpc_subnets",
        "give a subnet of that VPC",
    ),
    "group of another VPC": (
        lambda: {"vpc_subnets": ZONE_B, "security_groups": [a_group_of_another_vpc()]},
        "security_groups",
        "make it with that vpc",
    ),
    "group id": (
        lambda: {"vpc_subnets": ZONE_B, "security_groups": ["sg-0123456789abcdef0"]},
        "security_groups",
        "give a list of ec2.ISecurityGroup",
    ),
    "resolver by its name": (lambda: {"dns_servers": ["resolver.example"]}, "dns_servers", "IPv4 addresses"),
    "interface type": (lambda: {"secondary_interface_type": "ena"}, "secondary_interface_type", "efa, efa-only"),
    "placement group by its name": (lambda: {"placement_group": "ours"}, "placement_group", "ec2.IPlacementGroup"),
    "role by its ARN": (
        lambda: {"vpc_subnets": ZONE_B, "role": "arn:aws:iam::111122223333:role/nodes"},
        "role",
        "give an iam.IRole",
    ),
    "role that EC2 may not assume": (
        lambda: {"vpc_subnets": ZONE_B, "role": role_of("lambda.amazonaws.com")},
        "role",
        "ec2.amazonaws.com",
    ),
    "bucket for a cache": (lambda: {"vpc_subnets": ZONE_B, "cache": some_bucket()}, "cache", "CompileCache"),
    "cache of another region": (
        lambda: {
            "vpc_subnets": ZONE_B,
            "cache": CompileCache(place().elsewhere, f"Cache{next(_numbers)}", bucket_name="east-cache"),
        },
        "cache",
        "a cache in us-west-2",
    ),
    "second EFS": (lambda: {"file_systems": [an_efs(), an_efs()]}, "file_systems", "leave out one of them"),
    "file system id": (lambda: {"file_systems": ["fs-0123456789abcdef0"]}, "file_systems", "file systems of this"),
    "image id as text": (lambda: {"machine_image": "ami-0123456789abcdef0"}, "machine_image", "ec2.IMachineImage"),
    "install on a Neuron DLAMI": (lambda: {"neuron_software": "install"}, "machine_image", "neuron_software=install"),
    "neuron_software": (lambda: {"neuron_software": "none"}, "neuron_software", "image, install"),
    "device name": (lambda: {"root_device_name": "sda1"}, "root_device_name", "such as /dev/sda1"),
    "size as number": (lambda: {"root_volume_size": 500}, "root_volume_size", "Size.gibibytes(500)"),
    "size of nothing": (lambda: {"root_volume_size": Size.gibibytes(0)}, "root_volume_size", "a whole number from"),
    "size above EBS's": (lambda: {"root_volume_size": Size.tebibytes(65)}, "root_volume_size", "a whole number from"),
    "size in KiB": (lambda: {"root_volume_size": Size.kibibytes(5)}, "root_volume_size", "whole GiB"),
    "throughput": (lambda: {"root_volume_throughput": 4000}, "root_volume_throughput", "a whole number from"),
    "initialization rate": (
        lambda: {"root_volume_initialization_rate": 1},
        "root_volume_initialization_rate",
        "a whole number from",
    ),
    "second root volume": (
        lambda: {
            "vpc_subnets": ZONE_B,
            "block_devices": [ec2.BlockDevice(device_name="/dev/sda1", volume=ec2.BlockDeviceVolume.ebs(100))],
        },
        "block_devices",
        "root_volume_size is for",
    ),
    "volume as text": (lambda: {"vpc_subnets": ZONE_B, "block_devices": ["/dev/sdf"]}, "block_devices", "BlockDevice"),
    "key by its ARN": (lambda: {"vpc_subnets": ZONE_B, "volume_key": "arn:aws:kms:x"}, "volume_key", "a kms.IKey"),
    "script as text": (lambda: {"setup": "#!/bin/bash"}, "setup", "give a SetupScript"),
    "script that bash cannot read": (lambda: {"setup": SetupScript.from_text("if true")}, "setup", "bash -n"),
    "script of another system": (lambda: {"setup": SetupScript.from_text("echo\r\n")}, "setup", "line feeds alone"),
    "variable of the node": (lambda: {"vpc_subnets": ZONE_B, "environment": {"PATH": "/x"}}, "environment", "rename"),
    "variable of trn": (lambda: {"vpc_subnets": ZONE_B, "environment": {"TRN_X": "1"}}, "environment", "rename it"),
    "name of a variable": (lambda: {"vpc_subnets": ZONE_B, "environment": {"a-b": "1"}}, "environment", "rename it"),
    "number in a variable": (lambda: {"vpc_subnets": ZONE_B, "environment": {"N": 1}}, "environment", "write N='1'"),
    "variable too long": (
        lambda: {"vpc_subnets": ZONE_B, "environment": {"N": "x" * 20_000}},
        "environment",
        "into S3",
    ),
    "core config": (lambda: {"logical_neuroncore_config": 3}, "logical_neuroncore_config", "on trn1.32xlarge"),
    "internode_ssh as text": (lambda: {"internode_ssh": "on"}, "internode_ssh", "give True, of type bool"),
    "timeout as number": (lambda: {"timeout": 50}, "timeout", "such as Duration.hours(2)"),
    "timeout of a day": (lambda: {"timeout": Duration.days(1)}, "timeout", "a whole number from 1 to 55"),
    "timeout of seconds": (lambda: {"timeout": Duration.seconds(90)}, "timeout", "whole minutes"),
    "timeout token": (
        lambda: {"timeout": Duration.minutes(NUMBER)},
        "timeout",
        "known at synthesis",
    ),
    "replacements": (lambda: {"replacements": -1}, "replacements", "a whole number from 0 to 100"),
    "verification": (lambda: {"verification": "off"}, "verification", "enforce, observe"),
    "unknown check": (lambda: {"suppress_checks": ["efa-device"]}, "suppress_checks", "write efa-devices"),
    "generation": (lambda: {"generation": 0}, "generation", "a whole number, 1 or more"),
    "quota_gate as text": (lambda: {"quota_gate": "off"}, "quota_gate", "give False, of type bool"),
    "end without zone": (lambda: {"ends": datetime(2030, 1, 1)}, "ends", "give tzinfo"),
    "end as text": (lambda: {"ends": "5d"}, "ends", "such as Duration.hours(2)"),
    "end after a timedelta": (lambda: {"ends": timedelta(days=5)}, "ends", "such as Duration.hours(2)"),
    "end too late": (lambda: {"ends": Duration.days(900)}, "ends", "at most 366d"),
    "action without end": (lambda: {"ends_action": "destroy"}, "ends_action", "give ends too"),
    "warning without end": (lambda: {"warning": Duration.hours(2)}, "warning", "give ends too"),
    "address without end": (lambda: {"notify_email": "a@example.com"}, "notify_email", "give ends too"),
    "address": (lambda: {"notify_email": "nobody", "ends": Duration.days(5)}, "notify_email", "an e-mail address"),
    "budget of nothing": (lambda: {"budget_usd": 0}, "budget_usd", "1 or more"),
    "action without budget": (lambda: {"budget_action": "stop"}, "budget_action", "give budget_usd too"),
    "region without Trainium": (
        lambda: {"scope": stack_in("eu-south-2")},
        "the region of the stack",
        "choose",
    ),
    "nodes None": (lambda: {"nodes": None}, "nodes", "a whole number, 1 or more"),
    "VPC of another region": (
        lambda: {"scope": stack_in("us-east-1")},
        "vpc",
        "a VPC of us-east-1, the region of the stack",
    ),
    "subnet that is imported by its id alone": (
        lambda: {"vpc_subnets": ec2.SubnetSelection(subnets=[subnet_by_its_id()])},
        "vpc_subnets",
        "Add the availabilityZone when importing",
    ),
    "no list of groups": (lambda: {"security_groups": None}, "security_groups", "leave it out"),
    "one group": (lambda: {"security_groups": a_group_of_another_vpc()}, "security_groups", "put it into a list"),
    "group twice": (lambda: {"security_groups": [a_group_by_its_id()] * 2}, "security_groups", "up to 15 groups"),
    "no list of resolvers": (lambda: {"dns_servers": None}, "dns_servers", "leave it out"),
    "resolver outside of a list": (lambda: {"dns_servers": "10.0.0.2"}, "dns_servers", "put it into a list"),
    "interface type of one card": (
        lambda: {"instance_type": ec2.InstanceType(TRN1_SMALL), "secondary_interface_type": "efa-only"},
        "secondary_interface_type",
        "nothing on trn1.2xlarge",
    ),
    "placement group that spreads": (
        lambda: {"placement_group": placement_group(ec2.PlacementGroupStrategy.SPREAD)},
        "placement_group",
        "strategy=ec2.PlacementGroupStrategy.CLUSTER",
    ),
    "records for a cache": (
        lambda: {"cache": NodeRecords(place().stack, f"R{next(_numbers)}")},
        "cache",
        "CompileCache",
    ),
    "no list of file systems": (lambda: {"file_systems": None}, "file_systems", "leave it out"),
    "file system outside of a list": (lambda: {"file_systems": an_efs()}, "file_systems", "put it into a list"),
    "file system of another VPC": (
        lambda: {"file_systems": [an_efs(place().other_vpc)]},
        "file_systems",
        "make it with that vpc",
    ),
    "image of another region": (
        lambda: {"machine_image": ec2.MachineImage.generic_linux({"us-east-1": "ami-0123456789abcdef0"})},
        "machine_image",
        "no AMI specified for region 'us-west-2'",
    ),
    "image of Windows": (
        lambda: {
            "machine_image": ec2.MachineImage.latest_windows(ec2.WindowsVersion.WINDOWS_SERVER_2022_ENGLISH_FULL_BASE)
        },
        "machine_image",
        "an image of Linux",
    ),
    "size below the image's": (
        lambda: {"root_volume_size": Size.gibibytes(4)},
        "root_volume_size",
        "a whole number from 8",
    ),
    "no list of volumes": (lambda: {"vpc_subnets": ZONE_B, "block_devices": None}, "block_devices", "leave it out"),
    "volume outside of a list": (
        lambda: {"vpc_subnets": ZONE_B, "block_devices": volume(100)},
        "block_devices",
        "put it into a list",
    ),
    "volume by another name": (
        lambda: {"vpc_subnets": ZONE_B, "block_devices": [volume(100, name="sdf")]},
        "block_devices",
        "a device name, such as /dev/sda1",
    ),
    "volume without iops": (
        lambda: {"vpc_subnets": ZONE_B, "block_devices": [volume(100, volume_type=ec2.EbsDeviceVolumeType.IO2)]},
        "block_devices",
        "give iops",
    ),
    "volume with iops that it has not": (
        lambda: {
            "vpc_subnets": ZONE_B,
            "block_devices": [volume(100, volume_type=ec2.EbsDeviceVolumeType.GP2, iops=3000)],
        },
        "block_devices",
        "no IOPS on a gp2 volume",
    ),
    "volume that is too large": (
        lambda: {"vpc_subnets": ZONE_B, "block_devices": [volume(70_000)]},
        "block_devices",
        "1 to 65536 GiB on a gp3 volume",
    ),
    "key of another region": (
        lambda: {"volume_key": key_by_its_arn("us-east-1")},
        "volume_key",
        "a key of us-west-2, the region of the stack",
    ),
    "key that signs": (
        lambda: {"volume_key": kms.Key(place().stack, f"Key{next(_numbers)}", key_spec=kms.KeySpec.RSA_2048)},
        "volume_key",
        "SYMMETRIC_DEFAULT",
    ),
    "list of variables": (lambda: {"vpc_subnets": ZONE_B, "environment": ["A=b"]}, "environment", "a dict of names"),
    "NUL in a variable": (
        lambda: {"vpc_subnets": ZONE_B, "environment": {"A": "a\0b"}},
        "environment",
        "without NUL as the value of A",
    ),
    "no list of checks": (lambda: {"suppress_checks": None}, "suppress_checks", "leave it out"),
    "check outside of a list": (lambda: {"suppress_checks": "efa-devices"}, "suppress_checks", "put it into a list"),
    "switch as bool": (lambda: {"sleep": True}, "sleep", "give a SleepSwitch"),
    "switch of another stack": (
        lambda: {"sleep": SleepSwitch(stack_in(REGION), "Switch")},
        "sleep",
        "the SleepSwitch of Web",
    ),
    "catalogue by its path": (lambda: {"catalog": "types.toml"}, "catalog", "give a Catalog"),
}
