"""The shared file systems of a plan, each new or of the user's own."""

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.elastic_file_system import ElasticFileSystem, ExistingElasticFileSystem
from trainium_cdk.lustre_file_system import ExistingLustreFileSystem, LustreFileSystem
from trainium_cdk.node_file_system import NodeFileSystem
from trainium_core.plan import Plan
from trainium_core.plan.settings.file_systems import NEW_EFS


def plan_file_systems(scope: Construct, plan: Plan, *, vpc: ec2.IVpc, subnet: ec2.ISubnet) -> Sequence[NodeFileSystem]:
    """What the nodes of the plan mount, in the nodes' own subnet where it is new."""
    made = (_lustre(scope, plan, vpc, subnet), _efs(scope, plan, vpc, subnet))
    return [file_system for file_system in made if file_system is not None]


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
            size_gib=wanted.fsx_lustre,
            retain=wanted.at_destroy == "retain",
        )
    assert wanted.fsx_lustre_mount_name is not None
    assert wanted.fsx_lustre_security_group is not None
    return ExistingLustreFileSystem(
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
        return ExistingElasticFileSystem(
            scope, "OwnEfs", file_system_id=wanted.efs, security_group_id=wanted.efs_security_group
        )
    return ElasticFileSystem(
        scope,
        "Efs",
        vpc=vpc,
        subnet=subnet,
        file_system_id=None if wanted.efs == NEW_EFS else wanted.efs,
        retain=wanted.at_destroy == "retain",
    )
