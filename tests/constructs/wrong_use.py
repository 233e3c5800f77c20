"""Wrong uses of constructs, each with the parameter that is named and a part of what is said to do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import count
from typing import Any

from aws_cdk import Aws, Duration, Environment, RemovalPolicy, Size, Stack, Token
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
    LustreFileSystem,
    NeuronFleet,
    NeuronLaunchTemplate,
    NeuronSubnet,
    QuotaGate,
    SetupScript,
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


def made(kind: Callable[..., Any], **props: Any) -> None:
    scope = props.pop("scope", place().stack)
    kind(scope, f"{kind.__name__}{next(_numbers)}", **props)


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


def an_efs() -> ElasticFileSystem:
    subnet = place().vpc.private_subnets[0]
    return ElasticFileSystem(place().stack, f"Efs{next(_numbers)}", vpc=place().vpc, subnet=subnet)


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
        "make the group with that vpc",
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
}

OTHERS: Mapping[str, tuple[Callable[[], None], str, str]] = {
    "cache with name beside a bucket": (
        lambda: made(CompileCache, bucket=some_bucket(), bucket_name="x"),
        "bucket_name",
        "an existing bucket stays as it is",
    ),
    "cache kept beside a bucket": (
        lambda: made(CompileCache, bucket=some_bucket(), removal_policy=RemovalPolicy.RETAIN),
        "removal_policy",
        "an existing bucket stays as it is",
    ),
    "cache expiring beside a bucket": (
        lambda: made(CompileCache, bucket=some_bucket(), expiration=Duration.days(9)),
        "expiration",
        "an existing bucket stays as it is",
    ),
    "cache key beside a bucket": (
        lambda: made(
            CompileCache,
            bucket=some_bucket(),
            encryption_key=kms.Key.from_key_arn(
                place().stack, f"Key{next(_numbers)}", "arn:aws:kms:us-west-2:111122223333:key/x"
            ),
        ),
        "encryption_key",
        "s3.Bucket.from_bucket_attributes(..., encryption_key=key)",
    ),
    "cache bucket by its name": (lambda: made(CompileCache, bucket=BUCKET), "bucket", "give an s3.IBucket"),
    "cache with snapshot": (
        lambda: made(CompileCache, removal_policy=RemovalPolicy.SNAPSHOT),
        "removal_policy",
        "DESTROY, RETAIN, RETAIN_ON_UPDATE_OR_DELETE",
    ),
    "cache policy as text": (lambda: made(CompileCache, removal_policy="retain"), "removal_policy", "a RemovalPolicy"),
    "cache expiring after hours": (
        lambda: made(CompileCache, expiration=Duration.hours(5)),
        "expiration",
        "from 1 to 3650",
    ),
    "cache expiring as number": (lambda: made(CompileCache, expiration=90), "expiration", "Duration.days(30)"),
    "cache key by its ARN": (lambda: made(CompileCache, encryption_key="arn:aws:kms"), "encryption_key", "a kms.IKey"),
    "launch template without its EFA group": (
        lambda: made(
            NeuronLaunchTemplate,
            instance_type=ec2.InstanceType(TRN1),
            security_groups=[ec2.SecurityGroup(place().stack, f"Plain{next(_numbers)}", vpc=place().vpc)],
            instance_profile=iam.InstanceProfile.from_instance_profile_name(
                place().stack, f"Profile{next(_numbers)}", "nodes"
            ),
        ),
        "security_groups",
        "add an EfaSecurityGroup",
    ),
    "launch template with user data as text": (
        lambda: made(
            NeuronLaunchTemplate,
            instance_type=ec2.InstanceType(TRN1),
            security_groups=[],
            instance_profile=None,
            user_data="#!/bin/bash",
        ),
        "user_data",
        "an ec2.UserData",
    ),
    "quota of no instance": (
        lambda: made(QuotaGate, instance_type=ec2.InstanceType(TRN1), nodes=0),
        "nodes",
        "a whole number, 1 or more",
    ),
    "quota where the type is not offered": (
        lambda: made(QuotaGate, scope=place().elsewhere, instance_type=ec2.InstanceType("trn2.48xlarge")),
        "the region of the stack",
        "a region that offers trn2.48xlarge",
    ),
    "network by zone name": (lambda: made(ClusterNetwork, zone_id="us-west-2a"), "zone_id", "such as usw2-az4"),
    "network of another region": (lambda: made(ClusterNetwork, zone_id="use1-az4"), "zone_id", "us-west-2"),
    "unknown egress": (lambda: made(ClusterNetwork, zone_id="usw2-az4", egress="nat"), "egress", "nat-gateway"),
    "public network": (lambda: made(ClusterNetwork, zone_id="usw2-az4", cidr="8.8.0.0/16"), "cidr", "private IPv4"),
    "network that is too small": (
        lambda: made(ClusterNetwork, zone_id="usw2-az4", cidr="10.0.0.0/28"),
        "cidr",
        "from /16 to /24",
    ),
    "file system of another size": (
        lambda: made(LustreFileSystem, vpc=place().vpc, subnet=place().vpc.private_subnets[0], size_gib=1300),
        "size_gib",
        "multiple of 2400",
    ),
    "file system in a selection": (
        lambda: made(LustreFileSystem, vpc=place().vpc, subnet=ZONE_B, size_gib=1200),
        "subnet",
        "give an ec2.ISubnet",
    ),
    "mount target in a selection": (
        lambda: made(ElasticFileSystem, vpc=place().vpc, subnet=ZONE_B),
        "subnet",
        "give an ec2.ISubnet",
    ),
    "no subnet to choose": (
        lambda: made(
            NeuronSubnet,
            vpc=place().vpc,
            instance_type=ec2.InstanceType(TRN1),
            vpc_subnets=ec2.SubnetSelection(availability_zones=["us-west-2d"]),
        ),
        "vpc_subnets",
        "us-west-2a, us-west-2b",
    ),
}
