"""Converts a plan to constructs and their parameters."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from aws_cdk import Annotations, Duration, RemovalPolicy, Size, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.cdk_types import Key
from trainium_cdk.fleet.capacity import Capacity
from trainium_cdk.fleet.fleet_props import FleetProps
from trainium_cdk.fleet.node_image import NodeImage
from trainium_cdk.fleet.node_volumes import RootVolume
from trainium_cdk.network.network import ClusterNetwork
from trainium_cdk.network.security_group import HTTP, HTTPS
from trainium_cdk.physical_names import recorded_bucket_name
from trainium_cdk.pilot.pilot_props import Budget, PilotEnd, PilotProps
from trainium_cdk.pilot.sleep_switch import SleepSwitch
from trainium_cdk.stack_record import recorded_construct
from trainium_cdk.storage.compile_cache import CompileCache, cache_url
from trainium_cdk.storage.elastic_file_system import ElasticFileSystem
from trainium_cdk.storage.lustre_file_system import LustreFileSystem
from trainium_cdk.storage.node_file_system import NodeFileSystem
from trainium_core.catalog.neuron_software import default_image
from trainium_core.engines.registry import stack_warnings
from trainium_core.plan import Plan
from trainium_core.plan.deployed_plan import recorded_settings, recorded_type
from trainium_core.plan.node_settings import node_settings
from trainium_core.plan.pilot_end import read_pilot_end
from trainium_core.plan.settings.file_systems import NEW_EFS
from trainium_core.plan.settings.network import Egress
from trainium_core.problems import PlanError, Problem
from trainium_wire.stack_record import StackRecord


def check_region(construct: Construct, plan: Plan) -> None:
    """Check that a stack is in the region of the plan. Adds a warning to a stack without a region.

    Quotas, zones and images depend on the region.

    Raises:
        PlanError: The stack is in another region.
    """
    stack = Stack.of(construct)
    if Token.is_unresolved(stack.region):
        Annotations.of(construct).add_warning_v2(
            "trn:region",
            f"the plan is for {plan.region}, and the stack has no region: "
            f"set its env=Environment(region='{plan.region}')",
        )
    elif stack.region != plan.region:
        allowed = f"{stack.region}, the region of the stack {stack.stack_name}"
        fix = f"set env=Environment(region='{plan.region}') on the stack, or the plan's region='{stack.region}'"
        raise PlanError([Problem(key="region", got=plan.region, allowed=allowed, fix=fix)])


def plan_record(
    construct: Construct,
    plan: Plan,
    engine: str,
    *,
    bucket: s3.Bucket,
    cache: CompileCache,
    topic_arn: str | None = None,
) -> StackRecord:
    """The record of the construct that an engine's stack has, by its key in trn:stacks."""
    return StackRecord(
        cluster=plan.cluster_name,
        stack=Stack.of(construct).stack_name,
        construct=recorded_construct(construct),
        engine=engine,
        bucket=recorded_bucket_name(construct, bucket),
        cache_url=cache_url(recorded_bucket_name(construct, cache.bucket)),
        settings=recorded_settings(plan, engine),
        instance_type=recorded_type(plan.type, plan.region),
        topic_arn=topic_arn,
    )


def add_plan_warnings(construct: Construct, plan: Plan, engine: str) -> None:
    """Add the plan's warnings about the stack of an engine, by its key in trn:stacks."""
    for key, warning in stack_warnings(plan, engine).items():
        Annotations.of(construct).add_warning_v2(f"trn:{key}", warning)


def plan_network(
    scope: Construct,
    construct_id: str,
    plan: Plan,
    *,
    egress: Egress,
    any_bucket: bool = False,
    endpoint_services: Sequence[str] = (),
    sleep: SleepSwitch | None = None,
) -> ClusterNetwork:
    """The VPC of trn:vpc_id and the subnet of trn:subnet_id, by default new ones. An existing VPC keeps its egress.

    Args:
        any_bucket: Whether nodes in a new VPC without a NAT gateway reach all buckets, and not only those of the
            account and of the plan.
        endpoint_services: As in ClusterNetwork.
        sleep: As in ClusterNetwork.
    """
    wanted = plan.network
    if wanted.vpc_id is not None and wanted.subnet_id is not None:
        return ClusterNetwork.from_cluster_network_attributes(
            scope,
            construct_id,
            vpc_id=wanted.vpc_id,
            subnet_id=wanted.subnet_id,
            route_table_id=wanted.route_table_id,
        )
    assert plan.zone_id is not None
    return ClusterNetwork(
        scope,
        construct_id,
        zone_id=plan.zone_id,
        cidr=wanted.vpc_cidr,
        egress=egress,
        s3_buckets=None if any_bucket else _named_buckets(plan),
        endpoint_services=endpoint_services,
        sleep=sleep,
    )


def _named_buckets(plan: Plan) -> list[str]:
    """The buckets that the plan names. They may belong to another account."""
    urls = [*plan.jobs.inputs, plan.jobs.checkpoints, plan.sagemaker.data]
    named = [plan.cache.bucket, *(urlsplit(url).netloc for url in urls if url)]
    return sorted({name for name in named if name})


def outbound_tcp_ports(plan: Plan, *, egress: Egress, downloads: bool = False) -> Sequence[int]:
    """The outbound TCP ports of the plan's nodes.

    Port 443 is always open; port 80, for Ubuntu's packages, only in a new VPC with a NAT gateway, and in an existing
    VPC with `downloads`.
    """
    exists = plan.network.vpc_id is not None
    return (HTTP, HTTPS) if (downloads if exists else egress == "nat-gateway") else (HTTPS,)


def plan_cache(scope: Construct, construct_id: str, plan: Plan, *, encryption_key: Key | None = None) -> CompileCache:
    """The cache in trn:cache_bucket, by default in a new bucket.

    Args:
        encryption_key: KMS key of a new bucket's objects. Default: keys that S3 manages (SSE-S3).
    """
    if plan.cache.bucket is not None:
        own = s3.Bucket.from_bucket_name(scope, "OwnCacheBucket", plan.cache.bucket)
        return CompileCache(scope, construct_id, bucket=own, read_only=plan.cache.access == "read")
    return CompileCache(
        scope,
        construct_id,
        removal_policy=removal_policy(keep=plan.cache.outlives_cluster),
        expiration=Duration.days(plan.cache.expiration_days),
        encryption_key=encryption_key,
    )


def removal_policy(*, keep: bool) -> RemovalPolicy:
    """The removal policy of a new resource with data.

    Args:
        keep: Whether it outlives its stack. The rollback of a failed creation still deletes it, so that nothing is left
            when a deployment fails for capacity and is repeated in another zone.
    """
    return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if keep else RemovalPolicy.DESTROY


def plan_file_systems(scope: Construct, plan: Plan, *, vpc: ec2.IVpc, subnet: ec2.ISubnet) -> Sequence[NodeFileSystem]:
    """The file systems of the plan. New ones are in the nodes' subnet."""
    made = (_lustre(scope, plan, vpc, subnet), _efs(scope, plan, vpc, subnet))
    return [file_system for file_system in made if file_system is not None]


def plan_pilot(plan: Plan) -> PilotProps:
    """The end, notices, budget and idle limit of the plan's pilot."""
    pilot = plan.pilot
    return PilotProps(
        end=None
        if pilot.ends is None
        else PilotEnd(read_pilot_end(pilot.ends), pilot.ends_action, pilot.warning_hours),
        budget=None if pilot.budget_usd is None else Budget(pilot.budget_usd, pilot.budget_action),
        idle_minutes=pilot.idle_minutes,
        notify_email=pilot.notify_email,
        job_notices=pilot.job_notices,
        capacity_block_id=Capacity(plan.capacity, plan.reservation_id).block_id,
    )


def plan_fleet(
    plan: Plan,
    *,
    network: ClusterNetwork,
    cache: CompileCache,
    file_systems: Sequence[NodeFileSystem],
    sleep: SleepSwitch | None,
) -> FleetProps:
    """The parameters of the plan's fleet, with the network, cache and file systems of its cluster."""
    node, egress = plan.node, plan.network.new_vpc_egress
    downloads = node.neuron_software == "install" or plan.setup_script is not None
    return FleetProps(
        node=node_settings(plan),
        nodes=plan.nodes,
        capacity=Capacity(plan.capacity, plan.reservation_id),
        image=NodeImage(
            None if plan.image == default_image(plan.type) else plan.image,
            node.neuron_software,
            plan.root_device_name,
        ),
        root_volume=plan_root_volume(plan),
        node_generation=node.generation,
        vpc=network.vpc,
        subnet=network.subnet,
        outbound_tcp_ports=outbound_tcp_ports(plan, egress=egress, downloads=downloads),
        dns_servers=plan.network.dns_servers,
        cache=cache,
        timeout_minutes=node.timeout_minutes,
        replacements=node.replacements if node.recovery else 0,
        quota_check=plan.quota_check,
        pilot=plan_pilot(plan),
        metrics=plan.cloudwatch_metrics,
        file_systems=file_systems,
        sleep=sleep,
        placement_group_name=plan.network.placement_group,
        tags=plan.tags,
        jobs=plan.jobs,
        catalog=plan.catalog,
        prices=plan.prices,
        plan_settings=recorded_settings(plan, "cluster"),
    )


def plan_root_volume(plan: Plan) -> RootVolume:
    """The root volume of the plan's nodes."""
    return RootVolume(
        gib=plan.root_volume_gib,
        throughput=plan.root_volume_throughput,
        initialization_rate=plan.root_volume_initialization,
        device_name=plan.root_device_name,
    )


def _lustre(scope: Construct, plan: Plan, vpc: ec2.IVpc, subnet: ec2.ISubnet) -> NodeFileSystem | None:
    wanted = plan.file_systems
    if wanted.fsx_lustre is None:
        return None
    if isinstance(wanted.fsx_lustre, int):
        return LustreFileSystem(
            scope,
            "Lustre",
            vpc=vpc,
            subnet=subnet,
            size=Size.gibibytes(wanted.fsx_lustre),
            removal_policy=removal_policy(keep=wanted.at_destroy == "retain"),
        )
    assert wanted.fsx_lustre_mount_name is not None
    assert wanted.fsx_lustre_security_group is not None
    return LustreFileSystem.from_lustre_file_system_attributes(
        scope,
        "OwnLustre",
        file_system_id=wanted.fsx_lustre,
        mount_name=wanted.fsx_lustre_mount_name,
        security_group_id=wanted.fsx_lustre_security_group,
    )


def _efs(scope: Construct, plan: Plan, vpc: ec2.IVpc, subnet: ec2.ISubnet) -> NodeFileSystem | None:
    wanted = plan.file_systems
    if wanted.efs is None:
        return None
    if wanted.efs_security_group is not None:
        return ElasticFileSystem.from_elastic_file_system_attributes(
            scope, "OwnEfs", file_system_id=wanted.efs, security_group_id=wanted.efs_security_group
        )
    if wanted.efs != NEW_EFS:
        return ElasticFileSystem(scope, "Efs", vpc=vpc, subnet=subnet, file_system_id=wanted.efs)
    policy = removal_policy(keep=wanted.at_destroy == "retain")
    return ElasticFileSystem(scope, "Efs", vpc=vpc, subnet=subnet, removal_policy=policy)
