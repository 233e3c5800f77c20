"""What a fleet is made with besides its plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam

from trainium_cdk.cdk_types import Key
from trainium_cdk.compile_cache import ICompileCache
from trainium_cdk.node_file_system import NodeFileSystem
from trainium_cdk.sleep_switch import SleepSwitch
from trainium_core.plan.settings.network import Egress


@dataclass(frozen=True, kw_only=True)
class FleetParts:
    """The CDK objects that a fleet is made with besides its plan, as NeuronFleet's parameters say.

    image_id, image_name: what is booted where it is not the plan's image, and how the app names it.
    """

    vpc: ec2.IVpc
    subnet: ec2.ISubnet
    cache: ICompileCache
    egress: Egress | Literal["existing"]
    file_systems: Sequence[NodeFileSystem] = ()
    sleep: SleepSwitch | None = None
    security_groups: Sequence[ec2.ISecurityGroup] = ()
    role: iam.IRole | None = None
    volume_key: Key | None = None
    block_devices: Sequence[ec2.BlockDevice] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    placement_group_name: str | None = None
    image_id: str | None = None
    image_name: str | None = None
