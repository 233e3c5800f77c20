"""The validated values of a fleet."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam

from trainium_cdk.cdk_types import Key
from trainium_cdk.fleet.capacity import Capacity
from trainium_cdk.fleet.node_image import NodeImage
from trainium_cdk.fleet.node_volumes import RootVolume
from trainium_cdk.pilot.pilot_props import PilotProps
from trainium_cdk.pilot.sleep_switch import SleepSwitch
from trainium_cdk.storage.compile_cache import ICompileCache
from trainium_cdk.storage.node_file_system import NodeFileSystem
from trainium_core.catalog.catalog import Catalog
from trainium_core.plan.deployed_plan import is_recorded, recorded_values
from trainium_core.plan.node_settings import NodeSettings
from trainium_core.plan.settings.jobs import JobAccess
from trainium_core.plan.settings.node import CloudWatchMetrics
from trainium_core.plan.settings_by_key import SETTINGS, constructor_arguments
from trainium_core.plan.values import PlanValues
from trainium_core.prices.price import Price, PricedItem, PriceTable
from trainium_core.setting_schema.forms import as_written

_LONGEST = 64


@dataclass(frozen=True, kw_only=True)
class FleetProps:
    """The validated values of a fleet.

    Attributes:
        node_generation: A different number replaces all nodes. None: 1.
        replacements: Maximum number of failed nodes that are replaced in any 24 hours.
        security_groups: Security groups in addition to the fleet's own.
        role: Role of the nodes. None: a new one.
        volume_key: KMS key of the volumes. None: the account's default key for EBS.
        encryption_key: KMS key of the cluster's bucket, of a new cache and of the pilot's topics. None: keys that S3
            manages, and none for the topics.
        plan_settings: Settings of the plan for the record of the stack. None: the fleet has no plan.
        placement_group_name: Name of an existing placement group. None: a new one, if the nodes can use one.
    """

    node: NodeSettings
    nodes: int
    capacity: Capacity
    image: NodeImage
    root_volume: RootVolume
    node_generation: int | None
    vpc: ec2.IVpc
    subnet: ec2.ISubnet
    outbound_tcp_ports: Sequence[int]
    dns_servers: Sequence[str]
    cache: ICompileCache
    timeout_minutes: int
    replacements: int
    quota_check: bool
    pilot: PilotProps
    metrics: CloudWatchMetrics
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
    prices: PriceTable = field(default_factory=dict[PricedItem, Price])
    plan_settings: Mapping[str, Any] | None = None

    @property
    def settings(self) -> Mapping[str, Any]:
        """The values by the keys of their settings in a plan."""
        return {
            **self.node.settings,
            **self.capacity.settings,
            **self.root_volume.settings,
            **self.pilot.settings,
            "nodes": self.nodes,
            "vpc_id": self.vpc.vpc_id,
            "cache_access": "read" if self.cache.read_only else "read-write",
            "node_generation": self.node_generation,
            "node_timeout_minutes": self.timeout_minutes,
            "node_replacements": self.replacements,
            "cloudwatch_metrics": self.metrics,
        }

    def plan_values(self, region: str) -> PlanValues:
        """These values as those of a plan, without what only the CDK knows, such as the ID of an image."""
        values = {
            **self.settings,
            "region": region,
            "ami": None if self.image.source is None else "an image of the CDK",
            "fsx_lustre": "mounted" if "lustre" in self.node.mounts else None,
            "notify_email": self.pilot.notify_email or ("a topic of the CDK" if self.pilot.notices else None),
        }
        if self.catalog is not None:
            values["catalog"] = self.catalog
        return PlanValues(**constructor_arguments({**values, "prices": self.prices}))

    @property
    def replacing(self) -> Mapping[str, str]:
        """The settings whose change replaces the nodes, as text by key. Long texts become SHA-256 digests.

        Default values are omitted, so that a package version with another default does not replace nodes.
        """
        return {
            key: _text(value)
            for key, value in self.settings.items()
            if SETTINGS[key].replaces_nodes and value not in (None, SETTINGS[key].default)
        }

    def recorded_settings(self, image_id: str) -> Mapping[str, Any]:
        """The settings for the record of the stack. Without a plan, those that say the same as these values.

        Args:
            image_id: ID of the nodes' image.
        """
        if self.plan_settings is not None:
            return self.plan_settings
        ami = None if self.image.source is None else image_id
        return recorded_values(
            {key: value for key, value in {**self.settings, "ami": ami}.items() if is_recorded(key, "cluster")}
        )


def _text(value: object) -> str:
    text = str(as_written(value))
    return text if len(text) <= _LONGEST else hashlib.sha256(text.encode()).hexdigest()
