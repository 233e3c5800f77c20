"""The validated values of a fleet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam

from trainium_cdk.cdk_types import Key
from trainium_cdk.fleet.capacity import Capacity
from trainium_cdk.fleet.node_volumes import RootVolume
from trainium_cdk.pilot.pilot_props import PilotProps
from trainium_cdk.pilot.sleep_switch import SleepSwitch
from trainium_cdk.storage.compile_cache import ICompileCache
from trainium_cdk.storage.node_file_system import NodeFileSystem
from trainium_core.catalog.catalog import Catalog
from trainium_core.plan.deployed_plan import recorded_values
from trainium_core.plan.node_settings import NodeSettings
from trainium_core.plan.settings.jobs import JobAccess


@dataclass(frozen=True, kw_only=True)
class FleetProps:
    """The validated values of a fleet.

    Attributes:
        image_name: The app's reference to the image, by which a change is detected; empty for the default image.
        replacing: Values, by name, whose change replaces the nodes.
        replacements: Maximum number of failed nodes that are replaced in any 24 hours.
        security_groups: Security groups in addition to the fleet's own.
        role: Role of the nodes. None: a new one.
        volume_key: KMS key of the volumes. None: the account's default key for EBS.
        encryption_key: KMS key of the cluster's bucket and of the pilot's topics. None: keys that S3 manages, and none
            for the topics.
        plan_settings: Settings of the plan for the record of the stack. None: the fleet has no plan.
        placement_group_name: Name of an existing placement group. None: a new one, if the nodes can use one.
    """

    node: NodeSettings
    nodes: int
    capacity: Capacity
    image_id: str
    image_name: str
    root_volume: RootVolume
    replacing: Mapping[str, str]
    vpc: ec2.IVpc
    subnet: ec2.ISubnet
    outbound_tcp_ports: Sequence[int]
    dns_servers: Sequence[str]
    cache: ICompileCache
    timeout_minutes: int
    replacements: int
    quota_check: bool
    pilot: PilotProps
    file_systems: Sequence[NodeFileSystem] = ()
    sleep: SleepSwitch | None = None
    security_groups: Sequence[ec2.ISecurityGroup] = ()
    role: iam.IRole | None = None
    volume_key: Key | None = None
    encryption_key: Key | None = None
    block_devices: Sequence[ec2.BlockDevice] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    placement_group_name: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    jobs: JobAccess = field(default_factory=JobAccess)
    catalog: Catalog | None = None
    plan_settings: Mapping[str, Any] | None = None

    @property
    def recorded_settings(self) -> Mapping[str, Any]:
        """The settings for the record of the stack. Without a plan, those that say the same as these values."""
        if self.plan_settings is not None:
            return self.plan_settings
        return recorded_values(
            {
                "instance_type": self.node.type.name,
                "nodes": self.nodes,
                "capacity": self.capacity.kind,
                "reservation_id": self.capacity.reservation_id,
                "vpc_id": self.vpc.vpc_id,
                "ami": self.image_id if self.image_name else None,
                "root_volume_gib": self.root_volume.gib,
                "root_volume_throughput": self.root_volume.throughput,
                "root_volume_initialization": self.root_volume.initialization_rate,
                "logical_neuroncore_config": self.node.logical_neuroncore_config,
                "node_timeout_minutes": self.timeout_minutes,
                "node_replacements": self.replacements,
                "ends": None if self.pilot.end is None else str(self.pilot.end),
                "budget_usd": self.pilot.budget_usd,
                "budget_action": self.pilot.budget_action,
                "idle_minutes": self.pilot.idle_minutes,
            }
        )
