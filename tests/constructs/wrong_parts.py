"""Wrong uses of what fleets are of and beside, each with the parameter and a part of what is said to do."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from aws_cdk import Aws, Duration, NestedStack, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from tests.constructs.synth import REGION, a_plan
from tests.constructs.wrong_use import (
    BUCKET,
    NUMBER,
    TRN1,
    TRN1_SMALL,
    ZONE_B,
    a_group_by_its_id,
    key_by_its_arn,
    place,
    some_bucket,
    stack_in,
    unique,
)
from trainium_cdk import (
    ClusterNetwork,
    CompileCache,
    EfaSecurityGroup,
    ElasticFileSystem,
    ExistingLustreFileSystem,
    ExistingNetwork,
    FleetGate,
    HyperPod,
    LustreFileSystem,
    NeuronLaunchTemplate,
    NeuronSubnet,
    NodeKeeper,
    NodeRecords,
    QuotaGate,
    SageMakerTraining,
    SleepSwitch,
    TrainiumCluster,
)

_PORTS = ("outbound_tcp_ports", "a whole number from 1 to 65535")


def made(kind: Callable[..., Any], **props: Any) -> Any:
    return kind(props.pop("scope", place().stack), unique(kind.__name__), **props)


def made_in_vpc(kind: Callable[..., Any], **props: Any) -> Any:
    return made(kind, vpc=place().vpc, subnet=place().vpc.private_subnets[0], **props)


def nothing(value: object = None) -> Any:
    """What a type checker would refuse."""
    return value


def a_cache() -> CompileCache:
    return made(CompileCache, bucket=some_bucket())


def efa_group(vpc: ec2.IVpc) -> EfaSecurityGroup:
    return made(EfaSecurityGroup, vpc=vpc)


def a_subnet_of_another_vpc() -> ec2.ISubnet:
    given = {"availability_zone": "us-west-2a", "cidr_block": "10.0.200.0/24", "vpc_id": place().other_vpc.vpc_id}
    return made(ec2.PrivateSubnet, **given)


def a_launch_template(**props: Any) -> NeuronLaunchTemplate:
    profile = iam.InstanceProfile.from_instance_profile_name(place().stack, unique("Profile"), "nodes")
    given = {"instance_type": ec2.InstanceType(TRN1), "instance_profile": profile, **props}
    return made(NeuronLaunchTemplate, **{"security_groups": [a_group_by_its_id()], **given})


@cache
def a_switch() -> SleepSwitch:
    return SleepSwitch(stack_in(REGION), "Switch")


@cache
def records() -> NodeRecords:
    return made(NodeRecords)


def a_keeper(**props: Any) -> NodeKeeper:
    given = {"group_name": "nodes", "cluster_name": "training", "records": records(), "replacements": 2, **props}
    return made(NodeKeeper, **given)


@cache
def keeper() -> NodeKeeper:
    return a_keeper()


def a_gate(**props: Any) -> FleetGate:
    of_keeper = {"group_name": "nodes", "cluster_name": "training", "records": records(), "keeper": keeper()}
    return made(
        FleetGate, **{"nodes": "2", "launch_template_version": "1", "timeout_minutes": 50, **of_keeper, **props}
    )


PARTS: Mapping[str, tuple[Callable[[], object], str, str]] = {
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
                place().stack, unique("Key"), "arn:aws:kms:us-west-2:111122223333:key/x"
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
            security_groups=[ec2.SecurityGroup(place().stack, unique("Plain"), vpc=place().vpc)],
            instance_profile=iam.InstanceProfile.from_instance_profile_name(place().stack, unique("Profile"), "nodes"),
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
    "cache by another name": (
        lambda: made(CompileCache, bucket_name="My_Cache"),
        "bucket_name",
        "3 to 63 lower-case letters",
    ),
    "cache of no name": (lambda: made(CompileCache, bucket_name=""), "bucket_name", "3 to 63 lower-case letters"),
    "cache of an address": (lambda: made(CompileCache, bucket_name="192.168.0.1"), "bucket_name", "but no address"),
    "cache of a reserved name": (lambda: made(CompileCache, bucket_name="xn--cache"), "bucket_name", "3 to 63"),
    "cache key of another region": (
        lambda: made(CompileCache, encryption_key=key_by_its_arn("us-east-1")),
        "encryption_key",
        "a key of us-west-2",
    ),
    "cache key by an alias": (
        lambda: made(CompileCache, encryption_key=key_by_its_arn(REGION, "alias/cache")),
        "encryption_key",
        "IAM grants nothing on an alias",
    ),
    "cache for nobody": (lambda: a_cache().grant_read(nothing()), "grantee", "an iam.IGrantable"),
    "mount target and retain": (
        lambda: made_in_vpc(ElasticFileSystem, file_system_id="fs-0123456789abcdef0", retain=True),
        "retain",
        "an existing file system stays",
    ),
    "mount target for a size": (
        lambda: made_in_vpc(ElasticFileSystem, file_system_id="new"),
        "file_system_id",
        "the id",
    ),
    "mount target in another VPC": (
        lambda: made(ElasticFileSystem, vpc=place().vpc, subnet=place().other_vpc.private_subnets[0]),
        "subnet",
        "give a subnet of that VPC",
    ),
    "mount target in a subnet for another VPC": (
        lambda: made(ElasticFileSystem, vpc=place().vpc, subnet=a_subnet_of_another_vpc()),
        "subnet",
        "give a subnet of that VPC",
    ),
    "file system of a size as text": (
        lambda: made_in_vpc(LustreFileSystem, size_gib="1200"),
        "size_gib",
        "give an int",
    ),
    "file system of so many MB/s": (
        lambda: made_in_vpc(LustreFileSystem, size_gib=1200, persistent_mbps_per_tib=False),
        "persistent_mbps_per_tib",
        "125, 250, 500, 1000",
    ),
    "own file system by its size": (
        lambda: made(
            ExistingLustreFileSystem,
            file_system_id="1200",
            mount_name="abcdefgh",
            security_group_id="sg-0123456789abcdef0",
        ),
        "file_system_id",
        "the id of a file system",
    ),
    "addresses token": (
        lambda: made(ClusterNetwork, zone_id="usw2-az4", cidr=Aws.STACK_NAME),
        "cidr",
        "the value itself",
    ),
    "addresses of Docker": (
        lambda: made(ClusterNetwork, zone_id="usw2-az4", cidr="172.17.0.0/16"),
        "cidr",
        "Docker's own bridge",
    ),
    "network that sleeps elsewhere": (
        lambda: made(ClusterNetwork, zone_id="usw2-az4", sleep=SleepSwitch(stack_in(REGION), "Switch")),
        "sleep",
        "the SleepSwitch of Web",
    ),
    "own network by its name": (
        lambda: made(ExistingNetwork, vpc_id="my-vpc", subnet_id="subnet-0123456789abcdef0"),
        "vpc_id",
        "vpc-0123456789abcdef0",
    ),
    "port above all": (lambda: made(EfaSecurityGroup, vpc=place().vpc, outbound_tcp_ports=[70_000]), *_PORTS),
    "port of nothing": (lambda: made(EfaSecurityGroup, vpc=place().vpc, outbound_tcp_ports=[0]), *_PORTS),
    "port outside of a list": (
        lambda: made(EfaSecurityGroup, vpc=place().vpc, outbound_tcp_ports=443),
        "outbound_tcp_ports",
        "put it into a list",
    ),
    "group of no VPC": (lambda: made(EfaSecurityGroup, vpc=None), "vpc", "give an ec2.IVpc"),
    "launch template of no group": (
        lambda: a_launch_template(instance_type=ec2.InstanceType(TRN1_SMALL), security_groups=[]),
        "security_groups",
        "the default group of the VPC",
    ),
    "launch template of two VPCs": (
        lambda: a_launch_template(security_groups=[efa_group(place().vpc), efa_group(place().other_vpc)]),
        "security_groups",
        "groups of one VPC",
    ),
    "launch template of a role": (
        lambda: a_launch_template(instance_profile="nodes"),
        "instance_profile",
        "an iam.IInstanceProfile",
    ),
    "launch template with too much": (
        lambda: a_launch_template(user_data=ec2.UserData.custom("x" * 20_000)),
        "user_data",
        "up to 16384 bytes",
    ),
    "subnet for no type": (
        lambda: made(NeuronSubnet, vpc=place().vpc, instance_type=TRN1),
        "instance_type",
        "give an ec2.InstanceType",
    ),
    "less than no nodes": (lambda: a_switch().count(-1), "nodes", "a whole number, 0 or more"),
    "nodes token": (lambda: a_switch().count(nothing(NUMBER)), "nodes", "the value itself"),
    "resource of no stack": (lambda: a_switch().only_awake(nothing()), "resource", "a CfnResource"),
    "switch that trn cannot reach": (
        lambda: made(SleepSwitch, scope=NestedStack(place().stack, unique("Nested"))),
        "scope",
        "leave it out of a nested stack",
    ),
    "less than no replacements": (lambda: a_keeper(replacements=-1), "replacements", "a whole number, 0 or more"),
    "replacements without end": (lambda: a_keeper(replacements=10**6), "replacements", "from 0 to 100"),
    "keeper of no group": (lambda: a_keeper(group_name=""), "group_name", "the name of an Auto Scaling group"),
    "keeper of a block": (lambda: a_keeper(capacity_block_id="block"), "capacity_block_id", "cr-0123456789abcdef0"),
    "gate for hours": (lambda: a_gate(timeout_minutes=500), "timeout_minutes", "a whole number from 1 to 55"),
    "gate for a Duration": (lambda: a_gate(timeout_minutes=Duration.hours(1)), "timeout_minutes", "whole minutes"),
    "gate for the latest version": (
        lambda: a_gate(launch_template_version="$Latest"),
        "launch_template_version",
        "a whole number as text",
    ),
    "gate for less than no nodes": (lambda: a_gate(nodes="-2"), "nodes", "a whole number as text"),
    "gate of another cluster": (lambda: a_gate(cluster_name="other"), "cluster_name", "give both the same"),
    "gate of other records": (
        lambda: a_gate(records=NodeRecords(place().stack, unique("Records"))),
        "records",
        "give both the same",
    ),
    "quota for None": (
        lambda: made(QuotaGate, instance_type=ec2.InstanceType(TRN1), nodes=None),
        "nodes",
        "a whole number, 1 or more",
    ),
    "training of no name": (lambda: made(SageMakerTraining, cluster_name=None), "cluster_name", "1 to 32 lower-case"),
    "training of one name": (
        lambda: [made(SageMakerTraining, cluster_name="twice") for _ in range(2)],
        "cluster_name",
        "give each training a cluster_name of its own",
    ),
    "training with a key of another region": (
        lambda: made(SageMakerTraining, cluster_name="one", encryption_key=key_by_its_arn("us-east-1")),
        "encryption_key",
        "a key of us-west-2",
    ),
    "training with snapshots": (
        lambda: made(SageMakerTraining, cluster_name="one", removal_policy=RemovalPolicy.SNAPSHOT),
        "removal_policy",
        "buckets have no snapshots",
    ),
    "cluster of settings": (lambda: made(TrainiumCluster, plan={"nodes": 2}), "plan", "a Plan, such as"),
    "cluster that sleeps elsewhere": (
        lambda: made(TrainiumCluster, plan=a_plan(), sleep=SleepSwitch(stack_in(REGION), "Switch")),
        "sleep",
        "the SleepSwitch of Web",
    ),
    "pod of settings": (lambda: made(HyperPod, plan=None), "plan", "a Plan, such as"),
}
