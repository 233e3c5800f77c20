"""CDK objects that a fleet cannot use, as far as the app knows them; each as in wrong_use.py."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from aws_cdk import Duration, Environment, NestedStack, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from tests.constructs.synth import REGION
from tests.constructs.wrong_use import ZONE_B, an_efs, place, role_of, unique, volume
from trainium_cdk import ClusterNetwork

_GP3, _IO1 = ec2.EbsDeviceVolumeType.GP3, ec2.EbsDeviceVolumeType.IO1


@cache
def in_an_account() -> Stack:
    app: Any = place().stack.node.root
    return Stack(app, "Account", env=Environment(region=REGION, account="111122223333"))


@cache
def protected() -> Stack:
    app: Any = place().stack.node.root
    return Stack(app, "Protected", env=Environment(region=REGION), termination_protection=True)


def image_for_arm() -> ec2.IMachineImage:
    return ec2.MachineImage.latest_amazon_linux2023(cpu_type=ec2.AmazonLinuxCpuType.ARM_64)


def image_with_user_data() -> ec2.IMachineImage:
    own = ec2.UserData.custom("#!/bin/sh")
    return ec2.MachineImage.generic_linux({REGION: "ami-0123456789abcdef0"}, user_data=own)


def small_vpc(stack: Stack) -> ec2.Vpc:
    addresses = ec2.IpAddresses.cidr("10.0.0.0/26")
    return ec2.Vpc(stack, unique("Vpc"), availability_zones=["us-west-2b"], nat_gateways=1, ip_addresses=addresses)


def vpc_without_dns(stack: Stack) -> ec2.Vpc:
    return ec2.Vpc(stack, unique("Vpc"), availability_zones=["us-west-2b"], enable_dns_support=False)


@cache
def vpc_beside() -> ec2.Vpc:
    """A VPC of another stack with the logical id that the fleet's own has."""
    app: Any = place().stack.node.root
    return ec2.Vpc(Stack(app, "Twin", env=Environment(region=REGION)), "Vpc", availability_zones=["us-west-2b"])


OBJECTS: Mapping[str, tuple[Callable[[], Mapping[str, Any]], str, str]] = {
    "image for ARM": (lambda: {"machine_image": image_for_arm()}, "machine_image", "an image for x86_64"),
    "image with user data": (lambda: {"machine_image": image_with_user_data()}, "machine_image", "its user_data"),
    "key that is disabled": (
        lambda: {"volume_key": kms.Key(place().stack, unique("Key"), enabled=False)},
        "volume_key",
        "a key that is enabled",
    ),
    "role of another account": (
        lambda: {
            "scope": in_an_account(),
            "role": iam.Role.from_role_arn(in_an_account(), unique("Role"), "arn:aws:iam::444455556666:role/nodes"),
            "vpc_subnets": ZONE_B,
        },
        "role",
        "give a role of that account",
    ),
    "role of another stack": (
        lambda: {"scope": in_an_account(), "role": role_of("ec2.amazonaws.com"), "vpc_subnets": ZONE_B},
        "role",
        "iam.Role.from_role_arn(stack, 'NodeRole', role.role_arn)",
    ),
    "end of a nested stack": (
        lambda: {
            "scope": NestedStack(place().stack, unique("Nested")),
            "ends": Duration.days(1),
            "ends_action": "destroy",
        },
        "ends_action",
        "a stack of its own",
    ),
    "end of a protected stack": (
        lambda: {"scope": protected(), "ends": Duration.days(1), "ends_action": "destroy"},
        "ends_action",
        "or choose sleep",
    ),
    "volume of too many IOPS": (
        lambda: {"vpc_subnets": ZONE_B, "block_devices": [volume(10, volume_type=_GP3, iops=16_000)]},
        "block_devices",
        "give at least 32 GiB",
    ),
    "volume of too many provisioned IOPS": (
        lambda: {"vpc_subnets": ZONE_B, "block_devices": [volume(10, volume_type=_IO1, iops=600)]},
        "block_devices",
        "up to 500 IOPS on a io1 volume of 10 GiB",
    ),
    "volume of too much throughput": (
        lambda: {"vpc_subnets": ZONE_B, "block_devices": [volume(10, volume_type=_GP3, throughput=1000)]},
        "block_devices",
        "give iops=4000",
    ),
    "volume of the instance store": (
        lambda: {
            "vpc_subnets": ZONE_B,
            "block_devices": [ec2.BlockDevice(device_name="/dev/sdb", volume=ec2.BlockDeviceVolume.ephemeral(0))],
        },
        "block_devices",
        "volumes of EBS",
    ),
    "VPC without DNS": (lambda: {"vpc": vpc_without_dns(place().stack)}, "vpc", "its enable_dns_support=False"),
    "mount target in another zone": (
        lambda: {"vpc_subnets": ZONE_B, "file_systems": [an_efs()]},
        "file_systems",
        "the subnet of the nodes, Web/Vpc/PrivateSubnet2",
    ),
    "more nodes than the subnet has addresses": (
        lambda: {"vpc": small_vpc(place().stack), "nodes": 4},
        "nodes",
        "the 27 addresses of Web/",
    ),
    "network in a zone without the type": (
        lambda: {"vpc": ClusterNetwork(place().stack, unique("Network"), zone_id="usw2-az3").vpc},
        "vpc_subnets",
        "give the network one of these as zone_id",
    ),
    "group of another stack's VPC": (
        lambda: {
            "vpc_subnets": ZONE_B,
            "security_groups": [ec2.SecurityGroup(place().stack, unique("Group"), vpc=vpc_beside())],
        },
        "security_groups",
        "make it with that vpc",
    ),
    "rank in a variable": (lambda: {"vpc_subnets": ZONE_B, "environment": {"RANK": "0"}}, "environment", "torchrun"),
}
