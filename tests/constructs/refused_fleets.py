"""Fleets that are refused at synthesis, each with the parameter that the error names and a part of the message."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

from aws_cdk import Duration, Environment, NestedStack, SecretValue, Size, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from tests.constructs.refused_pilots import NUMBER, REFUSED_PILOTS
from tests.constructs.synth import REGION, new_app
from trainium_cdk import (
    Capacity,
    ClusterNetwork,
    CompileCache,
    ElasticFileSystem,
    NeuronFleet,
    NeuronLaunchTemplate,
    NodeChecks,
    NodeImage,
    PilotEnd,
    SetupScript,
    SleepSwitch,
)
from trainium_core.facts import facts

TRN1, SMALL = ec2.InstanceType("trn1.32xlarge"), ec2.InstanceType("trn1.2xlarge")
ZONE = ec2.SubnetSelection(availability_zones=["us-west-2b"])
BLOCK = Capacity.capacity_block("cr-0123456789abcdef0")
_numbers = count()


@dataclass(frozen=True)
class Place:
    """A stack with two VPCs. All cases share it, because creating a VPC for each would take seconds."""

    stack: Stack
    vpc: ec2.Vpc
    other_vpc: ec2.Vpc


@cache
def place() -> Place:
    stack = Stack(new_app(), "Web", env=Environment(region=REGION, account="111122223333"))
    zones = ["us-west-2a", "us-west-2b"]
    return Place(
        stack=stack,
        vpc=ec2.Vpc(stack, "Vpc", availability_zones=zones, nat_gateways=1),
        other_vpc=ec2.Vpc(stack, "Other", availability_zones=zones[:1], nat_gateways=1),
    )


def unique(name: str) -> str:
    return f"{name}{next(_numbers)}"


def create(kind: Callable[..., Any], **props: Any) -> Any:
    return kind(props.pop("scope", place().stack), unique(kind.__name__), **props)


def in_vpc(kind: Callable[..., Any], vpc: ec2.Vpc | None = None, **props: Any) -> Any:
    vpc = vpc or place().vpc
    return create(kind, vpc=vpc, subnet=vpc.private_subnets[0], **props)


def fleet(**props: Any) -> NeuronFleet:
    """A fleet in a new stack, because a stack may have only one."""
    defaults = {"instance_type": TRN1, "vpc": place().vpc, "vpc_subnets": ZONE}
    return create(NeuronFleet, **{"scope": stack_in(REGION, account="111122223333"), **defaults, **props})


@cache
def a_fleet() -> NeuronFleet:
    return fleet()


def stack_in(region: str, *, account: str | None = None, **props: Any) -> Stack:
    app: Any = place().stack.node.root
    return Stack(app, unique("S"), env=Environment(region=region, account=account), **props)


def role_of(service: str) -> iam.Role:
    principal: Any = iam.ServicePrincipal(service)
    return create(iam.Role, assumed_by=principal)


def volume(gib: int, *, name: str = "/dev/sdf", **options: Any) -> Mapping[str, Any]:
    device = ec2.BlockDevice(device_name=name, volume=ec2.BlockDeviceVolume.ebs(gib, **options))
    return {"block_devices": [device]}


def environment(**variables: str) -> Mapping[str, Any]:
    return {"environment": variables}


def image(image: ec2.IMachineImage) -> Mapping[str, Any]:
    return {"image": NodeImage.custom(image)}


def key_in(region: str) -> kms.IKey:
    return kms.Key.from_key_arn(place().stack, unique("Key"), f"arn:aws:kms:{region}:111122223333:key/x")


def some_bucket() -> s3.IBucket:
    return s3.Bucket.from_bucket_name(place().stack, unique("Bucket"), "my-cache")


def some_group() -> ec2.ISecurityGroup:
    return ec2.SecurityGroup.from_security_group_id(place().stack, unique("Group"), "sg-0123456789abcdef0")


def ssh_group() -> ec2.SecurityGroup:
    group = create(ec2.SecurityGroup, vpc=place().vpc, allow_all_outbound=False)
    group.add_ingress_rule(group, ec2.Port.SSH)
    group.add_egress_rule(group, ec2.Port.SSH)
    return group


def a_launch_template(**props: Any) -> NeuronLaunchTemplate:
    profile = iam.InstanceProfile.from_instance_profile_name(place().stack, unique("Profile"), "nodes")
    return create(
        NeuronLaunchTemplate,
        **{"instance_type": TRN1, "instance_profile": profile, "security_groups": [some_group()], **props},
    )


def target_group(**props: Any) -> elbv2.NetworkTargetGroup:
    return create(elbv2.NetworkTargetGroup, **{"vpc": place().vpc, "port": 80, **props})


UBUNTU: str = facts()["bare_images"]["parameters"]["Ubuntu 24.04"]
IO1, IO2 = ec2.EbsDeviceVolumeType.IO1, ec2.EbsDeviceVolumeType.IO2
GP3 = ec2.EbsDeviceVolumeType.GP3

FLEETS: Mapping[str, tuple[Callable[[], Mapping[str, Any]], str, str]] = {
    "unknown type": (lambda: {"instance_type": ec2.InstanceType("trn1.32xlrge")}, "instance_type", "write trn1.32x"),
    "type of another region": (
        lambda: {"instance_type": ec2.InstanceType("trn2.48xlarge")},
        "the region of the stack",
        "a region that offers trn2.48xlarge",
    ),
    "nodes token": (lambda: {"nodes": NUMBER}, "nodes", "got a CDK token; allowed: a value known at synthesis"),
    "nodes as text": (
        lambda: {"nodes": "2"},
        "nodes",
        "got '2'; allowed: a value of type int; fix: pass a value of this type",
    ),
    "nodes without EFA": (lambda: {"instance_type": SMALL, "nodes": 2}, "nodes", "choose 1, or a type with EFA"),
    "more nodes than addresses": (
        lambda: {
            "nodes": 4,
            "vpc_subnets": None,
            "vpc": create(
                ec2.Vpc,
                availability_zones=["us-west-2b"],
                nat_gateways=1,
                ip_addresses=ec2.IpAddresses.cidr("10.0.0.0/26"),
            ),
        },
        "nodes",
        "secondary_interface_type='efa-only'",
    ),
    "more nodes than a block": (lambda: {"nodes": 65, "capacity": BLOCK}, "nodes", "use 64 nodes or fewer"),
    "invalid cluster name": (lambda: {"cluster_name": "Web"}, "cluster_name", "lower-case letters"),
    "block without id": (lambda: {"capacity": Capacity("capacity-block", None)}, "reservation_id", "specify its ID"),
    "placement group of a block": (
        lambda: {
            "capacity": BLOCK,
            "placement_group": create(ec2.PlacementGroup, strategy=ec2.PlacementGroupStrategy.CLUSTER),
        },
        "placement_group",
        "close together",
    ),
    "placement group that spreads": (
        lambda: {"placement_group": create(ec2.PlacementGroup, strategy=ec2.PlacementGroupStrategy.SPREAD)},
        "placement_group",
        "strategy=ec2.PlacementGroupStrategy.CLUSTER",
    ),
    "zone without a subnet of the VPC": (
        lambda: {"vpc_subnets": ec2.SubnetSelection(availability_zones=["us-west-2d"])},
        "vpc_subnets",
        "us-west-2a, us-west-2b",
    ),
    "subnet of another VPC": (
        lambda: {"vpc_subnets": ec2.SubnetSelection(subnets=[place().other_vpc.private_subnets[0]])},
        "vpc_subnets",
        "pass a subnet of that VPC",
    ),
    "network in a zone without the type": (
        lambda: {"vpc": create(ClusterNetwork, zone_id="usw2-az3").vpc, "vpc_subnets": None},
        "vpc_subnets",
        "pass one of these to the network as zone_id",
    ),
    "more nodes than addresses of each subnet": (
        lambda: {
            "nodes": 4,
            "vpc_subnets": None,
            "vpc": create(
                ec2.Vpc,
                availability_zones=["us-west-2a", "us-west-2b"],
                nat_gateways=1,
                ip_addresses=ec2.IpAddresses.cidr("10.0.0.0/25"),
            ),
        },
        "nodes",
        "PrivateSubnet1 has 27 addresses for nodes, and each node needs 8",
    ),
    "VPC of another region": (lambda: {"scope": stack_in("us-east-1")}, "vpc", "a VPC of us-east-1, the region"),
    "VPC without DNS": (
        lambda: {"vpc": create(ec2.Vpc, availability_zones=["us-west-2b"], enable_dns_support=False)},
        "vpc",
        "its enable_dns_support=False",
    ),
    "group of another VPC": (
        lambda: {"security_groups": [create(ec2.SecurityGroup, vpc=place().other_vpc)]},
        "security_groups",
        "create it with that vpc",
    ),
    "DNS server given by its name": (lambda: {"dns_servers": ["resolver.example"]}, "dns_servers", "IPv4 addresses"),
    "interface type with one network card": (
        lambda: {"instance_type": SMALL, "secondary_interface_type": "efa-only"},
        "secondary_interface_type",
        "nothing on trn1.2xlarge",
    ),
    "role that EC2 may not assume": (lambda: {"role": role_of("lambda.amazonaws.com")}, "role", "ec2.amazonaws.com"),
    "role of another account": (
        lambda: {"role": iam.Role.from_role_arn(place().stack, unique("Role"), "arn:aws:iam::444455556666:role/nodes")},
        "role",
        "pass a role of that account",
    ),
    "role of another stack": (
        lambda: {"scope": stack_in(REGION), "role": role_of("ec2.amazonaws.com")},
        "role",
        "iam.Role.from_role_arn(stack, 'NodeRole', role.role_arn)",
    ),
    "cache of another region": (
        lambda: {"cache": create(CompileCache, scope=stack_in("us-east-1"), bucket_name="east-cache")},
        "cache",
        "a cache in us-west-2",
    ),
    "second EFS": (
        lambda: {"file_systems": [in_vpc(ElasticFileSystem), in_vpc(ElasticFileSystem)]},
        "file_systems",
        "remove one of them",
    ),
    "file system of another VPC": (
        lambda: {"file_systems": [in_vpc(ElasticFileSystem, place().other_vpc)]},
        "file_systems",
        "create it with that vpc",
    ),
    "mount target in another zone": (
        lambda: {"file_systems": [in_vpc(ElasticFileSystem)]},
        "file_systems",
        "the subnet of the nodes, Web/Vpc/PrivateSubnet2",
    ),
    "image of another region": (
        lambda: image(ec2.MachineImage.generic_linux({"us-east-1": "ami-0123456789abcdef0"})),
        "image",
        "no AMI specified for region 'us-west-2'",
    ),
    "image for ARM": (
        lambda: image(ec2.MachineImage.latest_amazon_linux2023(cpu_type=ec2.AmazonLinuxCpuType.ARM_64)),
        "image",
        "an image for x86_64",
    ),
    "image without Neuron software": (
        lambda: image(ec2.MachineImage.latest_amazon_linux2023()),
        "image",
        "pass NodeImage.install_on(machine_image)",
    ),
    "parameter of an image without Neuron software": (
        lambda: image(ec2.MachineImage.from_ssm_parameter(UBUNTU)),
        "image",
        "pass NodeImage.install_on(machine_image)",
    ),
    "image of Windows": (
        lambda: image(ec2.MachineImage.latest_windows(ec2.WindowsVersion.WINDOWS_SERVER_2022_ENGLISH_FULL_BASE)),
        "image",
        "got 'a Windows image'",
    ),
    "invalid root device": (
        lambda: {"image": NodeImage.custom(ec2.MachineImage.latest_amazon_linux2023(), root_device_name="xvda")},
        "root_device_name",
        "a device name, such as /dev/sda1",
    ),
    "install on a type with GPUs": (
        lambda: {
            "instance_type": ec2.InstanceType("p5.48xlarge"),
            "image": NodeImage.install_on(ec2.MachineImage.latest_amazon_linux2023()),
        },
        "image",
        "image on p5.48xlarge, which has GPUs",
    ),
    "unknown interface type": (
        lambda: {"secondary_interface_type": "ena"},
        "secondary_interface_type",
        "efa, efa-only",
    ),
    "generation token": (lambda: {"node_generation": NUMBER}, "node_generation", "known at synthesis"),
    "replacements token": (lambda: {"max_replacements": NUMBER}, "max_replacements", "known at synthesis"),
    "root volume below the image's": (lambda: {"root_volume_size": Size.gibibytes(4)}, "root_volume_size", "8 to"),
    "throughput token": (lambda: {"root_volume_throughput": NUMBER}, "root_volume_throughput", "known at synthesis"),
    "second root volume": (lambda: volume(100, name="/dev/sda1"), "block_devices", "see root_volume_size"),
    "volume without iops": (lambda: volume(100, volume_type=IO1), "block_devices", "set iops"),
    "volume of too much throughput": (
        lambda: volume(10, volume_type=GP3, throughput=1000),
        "block_devices",
        "set iops=4000",
    ),
    "volume of many iops": (lambda: volume(10, volume_type=GP3, iops=16000), "block_devices", "at least 32 GiB"),
    "io2 volume of too many iops": (
        lambda: volume(4, volume_type=IO2, iops=5000),
        "block_devices",
        "set at least 5 GiB",
    ),
    "throughput of a gp2 volume": (
        lambda: volume(10, volume_type=ec2.EbsDeviceVolumeType.GP2, throughput=250),
        "block_devices",
        "remove throughput, or choose another volume_type",
    ),
    "key of another region": (lambda: {"volume_key": key_in("us-east-1")}, "volume_key", "a key of us-west-2"),
    "asymmetric key": (
        lambda: {"volume_key": create(kms.Key, key_spec=kms.KeySpec.RSA_2048)},
        "volume_key",
        "SYMMETRIC_DEFAULT",
    ),
    "script that bash cannot read": (lambda: {"setup": SetupScript.from_text("if true")}, "setup", "bash -n"),
    "secret variable": (
        lambda: {"environment": {"TOKEN": SecretValue.unsafe_plain_text("x")}},
        "environment",
        "read it in the job",
    ),
    "unwrapped secret": (
        lambda: environment(TOKEN=SecretValue.secrets_manager("token").unsafe_unwrap()),
        "environment",
        "read it in the job",
    ),
    "part of a variable is an unwrapped parameter": (
        lambda: environment(URL=f"https://{SecretValue.ssm_secure('/token').unsafe_unwrap()}@host"),
        "environment",
        "read it in the job",
    ),
    "cache of another account": (
        lambda: {"cache": create(CompileCache, scope=stack_in(REGION, account="444455556666"))},
        "cache",
        "pass a cache of that account",
    ),
    "variable that the node sets": (lambda: environment(PATH="/x"), "environment", "rename"),
    "variable too long": (lambda: environment(N="x" * 20_000), "environment", "into S3"),
    "timeout of seconds": (
        lambda: {"ready_timeout": Duration.seconds(90)},
        "ready_timeout",
        "a whole number of minutes",
    ),
    "root volume of half a GiB more": (
        lambda: {"root_volume_size": Size.mebibytes(512 * 1024 + 512)},
        "root_volume_size",
        "got '512.5 GiB'; allowed: a whole number of GiB; fix: round it, for example to Size.gibibytes(513)",
    ),
    "timeout of a day": (lambda: {"ready_timeout": Duration.days(1)}, "ready_timeout", "1 to 55 minutes"),
    "unknown check": (lambda: {"checks": NodeChecks.enforce(suppress=["efa-device"])}, "suppress", "write efa-devices"),
    "idle limit of a block": (
        lambda: {"idle_limit": Duration.hours(1), "capacity": BLOCK},
        "idle_limit",
        "which is paid in advance",
    ),
    "deletion of a nested stack": (
        lambda: {"scope": create(NestedStack), "end": PilotEnd.after(Duration.days(1), action="destroy")},
        "end",
        "a separate stack",
    ),
    "switch of another stack": (
        lambda: {"sleep": create(SleepSwitch, scope=stack_in(REGION))},
        "sleep",
        "the SleepSwitch of S",
    ),
    **REFUSED_PILOTS,
}
