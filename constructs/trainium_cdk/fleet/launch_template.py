"""Launch templates for Trainium instance types."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsii
from aws_cdk import CfnTag, Fn, IStableAnyProducer, ITaggable, Lazy, Resource, Size, Stack, TagManager, TagType
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces.aws_ec2 import LaunchTemplateReference
from constructs import Construct

from trainium_cdk.cdk_types import Key
from trainium_cdk.checks import check, refuse
from trainium_cdk.fleet.capacity import Capacity, checked_capacity
from trainium_cdk.fleet.cluster_names import checked_cluster_name
from trainium_cdk.fleet.node_image import NodeImage, known_placement_group_name, node_image_id
from trainium_cdk.fleet.node_type import check_secondary_interfaces, checked_type
from trainium_cdk.fleet.node_volumes import RootVolume, block_device_mappings, checked_root_volume
from trainium_cdk.network.security_group import check_groups, may_carry_efa
from trainium_cdk.storage.encryption_key import check_key
from trainium_core.catalog.catalog import Catalog
from trainium_core.facts import facts
from trainium_core.plan.network_layout import NetworkInterface
from trainium_core.plan.node_settings import NodeSettings
from trainium_core.plan.rules.nodes import block_placement
from trainium_core.plan.settings.network import CardInterfaceType
from trainium_runtime.naming import CLUSTER_TAG

_Data = ec2.CfnLaunchTemplate.LaunchTemplateDataProperty
_METADATA_OPTIONS = ec2.CfnLaunchTemplate.MetadataOptionsProperty(
    http_endpoint="enabled",
    http_tokens="required",
    # One hop more than the node itself needs, for containers.
    http_put_response_hop_limit=2,
)


@dataclass(frozen=True, kw_only=True)
class LaunchTemplateProps:
    """The validated values of a launch template.

    Attributes:
        market_type: Market type of the instances, in EC2's terms; None for On-Demand Instances and reservations.
        image_id: Image of the instances; None if the service that launches them chooses it, as EKS does.
        instance_profile: Instance profile of the instances; None if that service sets it.
        tags: Tags of the template, instances, volumes and network interfaces, in addition to trn:cluster and Name.
        description: Description of the version; a change creates a new version.
    """

    node: NodeSettings
    capacity: Capacity
    market_type: str | None
    root_volume: RootVolume
    security_groups: Sequence[ec2.ISecurityGroup]
    image_id: str | None = None
    instance_profile: iam.IInstanceProfile | None = None
    user_data: str = ""
    placement_group_name: str | None = None
    volume_key: Key | None = None
    block_devices: Sequence[ec2.BlockDevice] = ()
    tags: Mapping[str, str]
    description: str | None = None


@jsii.implements(ITaggable, ec2.ILaunchTemplate)
class LaunchTemplateBase(Resource):
    """The launch template of nodes, which a subclass creates from validated values.

    Its resource is L1, because the CDK's L2 construct supports neither network cards nor Capacity Blocks. The app's
    tags are applied to instances, volumes and network interfaces too. `block_devices_text` contains the mappings of
    additional volumes as JSON.
    """

    block_devices_text: str
    _tags: TagManager
    _template: ec2.CfnLaunchTemplate

    @property
    def launch_template_id(self) -> str:
        """ID of the launch template."""
        return self._template.ref

    @property
    def launch_template_name(self) -> str | None:
        """None: the launch template is referred to by its ID."""
        return None

    @property
    def launch_template_ref(self) -> LaunchTemplateReference:
        """A reference to the launch template."""
        return self._template.launch_template_ref

    @property
    def version_number(self) -> str:
        """Number of the newest version."""
        return self._template.attr_latest_version_number

    @property
    def tags(self) -> TagManager:
        """The tags that `Tags.of(...)` sets on the launch template and on the resources launched from it."""
        return self._tags

    def _make(self, props: LaunchTemplateProps) -> None:
        node = props.node
        if node.uses_efa and not any(map(may_carry_efa, props.security_groups)):
            paths = ", ".join(group.node.path for group in props.security_groups) or None
            raise refuse(
                self,
                "security_groups",
                paths,
                allowed="a group that allows all traffic from itself and to itself, which EFA requires",
                fix="add an EfaSecurityGroup",
            )
        self._tags = TagManager(TagType.KEY_VALUE, "AWS::EC2::LaunchTemplate")
        tags = {**props.tags, CLUSTER_TAG: node.cluster_name, "Name": f"{node.cluster_name}-node"}
        groups = [group.security_group_id for group in props.security_groups]
        further = block_device_mappings(
            self, props.block_devices, root_device_name=props.root_volume.device_name, key=props.volume_key
        )
        self.block_devices_text = json.dumps(Stack.of(self).resolve(further), sort_keys=True)
        group, market, profile = props.placement_group_name, None, None
        if props.instance_profile is not None:
            arn = props.instance_profile.instance_profile_arn
            profile = ec2.CfnLaunchTemplate.IamInstanceProfileProperty(arn=arn)
        if props.market_type:
            market = ec2.CfnLaunchTemplate.InstanceMarketOptionsProperty(market_type=props.market_type)
        self._template = ec2.CfnLaunchTemplate(
            self,
            "Resource",
            launch_template_data=_Data(
                instance_type=node.type.name,
                image_id=props.image_id,
                iam_instance_profile=profile,
                network_interfaces=[
                    _interface(interface, groups, is_only=len(node.network_interfaces) == 1)
                    for interface in node.network_interfaces
                ],
                block_device_mappings=[props.root_volume.mapping(props.volume_key), *further],
                metadata_options=_METADATA_OPTIONS,
                placement=ec2.CfnLaunchTemplate.PlacementProperty(group_name=group) if group else None,
                instance_market_options=market,
                capacity_reservation_specification=_reservation(props.capacity),
                tag_specifications=Lazy.any(_TagSpecifications(tags, self._tags)),
                user_data=Fn.base64(props.user_data) if props.user_data else None,  # EC2 refuses an empty one.
            ),
            tag_specifications=_own_tags(tags),
            version_description=props.description,
        )


class NodeLaunchTemplate(LaunchTemplateBase):
    """The launch template of a fleet or a compute node group. NeuronLaunchTemplate documents its attributes."""

    def __init__(self, scope: Construct, construct_id: str, *, props: LaunchTemplateProps) -> None:
        super().__init__(scope, construct_id)
        self._make(props)


class NeuronLaunchTemplate(LaunchTemplateBase):
    """A launch template for Trainium nodes, with a network interface for each network card.

    The app's tags are applied to instances, volumes and network interfaces too. `image_id` is the machine image,
    and `node.default_child` the `ec2.CfnLaunchTemplate`.

    Example:

        template = NeuronLaunchTemplate(
            stack,
            "Template",
            instance_type=ec2.InstanceType("trn1.32xlarge"),
            security_groups=[EfaSecurityGroup(stack, "Group", vpc=vpc)],
            instance_profile=iam.InstanceProfile(stack, "Profile"),
            user_data=ec2.UserData.for_linux(),
        )
    """

    image_id: str

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        instance_type: ec2.InstanceType,
        security_groups: Sequence[ec2.ISecurityGroup],
        instance_profile: iam.IInstanceProfile,
        user_data: ec2.UserData | None = None,
        cluster_name: str | None = None,
        capacity: Capacity | None = None,
        placement_group: ec2.IPlacementGroup | None = None,
        secondary_interface_type: CardInterfaceType | None = None,
        image: NodeImage | None = None,
        root_volume_size: Size | None = None,
        root_volume_throughput: int | None = None,
        root_volume_initialization_rate: int | None = None,
        block_devices: Sequence[ec2.BlockDevice] = (),
        volume_key: Key | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        """
        Args:
            instance_type: Type of every node. It must be offered in the region of the stack.
            security_groups: Security groups of every interface. If the type has EFA, one must allow all traffic from
                and to itself, as an EfaSecurityGroup does. Imported groups are not checked.
            instance_profile: The instance profile with the nodes' role.
            user_data: User data for the first boot of a node. Default: none.
            cluster_name: Value of the tag trn:cluster on launched resources: 1 to 32 lower-case letters, digits and
                single hyphens, a letter first and no hyphen last. Default: derived from the construct's path.
            capacity: The purchase option. Default: Capacity.on_demand().
            placement_group: A cluster placement group, which EFA needs for its full speed. Default: none.
            secondary_interface_type: Interface type of all network cards but the first. efa-only needs no IP address.
                Default: efa.
            image: Machine image of the nodes; not NodeImage.install_on(), because only a fleet installs software.
                Default: the newest Neuron DLAMI at the deployment.
            root_volume_size: Size of the gp3 root volume. Default: 512 GiB.
            root_volume_throughput: Throughput of the root volume, in MiB/s. Default: 500.
            root_volume_initialization_rate: Rate in MiB/s at which EBS loads the image into a new root volume, billed
                per GiB. Default: without a guaranteed rate.
            block_devices: Additional volumes, encrypted unless `encrypted` is False. Default: none.
            volume_key: KMS key of the volumes. Default: the account's default key for EBS.
            catalog: Instance types, including your own. Default: the built-in catalogue.

        Raises:
            PropsError: A parameter is invalid.
        """
        super().__init__(scope, construct_id)
        kind = checked_type(self, instance_type, catalog)
        purchase_option = checked_capacity(self, capacity, kind, catalog)
        node = NodeSettings(
            cluster_name=checked_cluster_name(self, cluster_name),
            type=kind,
            secondary_interface_type=secondary_interface_type or "efa",
        )
        check_secondary_interfaces(self, secondary_interface_type, node)
        image = image or NodeImage.dlami()
        if image.neuron_software == "install":
            allowed, fix = "an image with Neuron software", "choose NodeImage.custom(), and install it in user_data"
            raise refuse(self, "image", "NodeImage.install_on()", allowed=allowed, fix=fix)
        group = known_placement_group_name(self, placement_group)
        check(self, block_placement(group, purchase_option.kind, field="placement_group"))
        check_key(self, "volume_key", volume_key)
        check_groups(self, security_groups, vpc=None)
        if not security_groups:
            fix = "pass a group: without one, EC2 uses the default group of the VPC"
            raise refuse(self, "security_groups", "an empty list", allowed="at least one group", fix=fix)
        self.image_id = node_image_id(self, image, kind)
        self._make(
            LaunchTemplateProps(
                node=node,
                capacity=purchase_option,
                market_type=launch_market_type(purchase_option),
                image_id=self.image_id,
                root_volume=checked_root_volume(
                    self,
                    size=root_volume_size,
                    throughput=root_volume_throughput,
                    initialization_rate=root_volume_initialization_rate,
                    device_name=image.root_device_name,
                ),
                security_groups=security_groups,
                instance_profile=instance_profile,
                user_data=self._checked_user_data(user_data),
                placement_group_name=group,
                volume_key=volume_key,
                block_devices=block_devices,
                tags={},
            )
        )

    def _checked_user_data(self, user_data: ec2.UserData | None) -> str:
        text, limit = "" if user_data is None else user_data.render(), facts()["user_data"]["limit_bytes"]
        if len(text.encode()) > limit:
            allowed = f"up to {limit} bytes, the limit of EC2"
            fix = "put long content into S3, and download it"
            raise refuse(self, "user_data", f"{len(text.encode())} bytes", allowed=allowed, fix=fix)
        return text


def simple_launch_template(
    scope: Construct,
    construct_id: str,
    *,
    image_id: str,
    security_groups: Sequence[ec2.ISecurityGroup],
    root_volume: ec2.CfnLaunchTemplate.BlockDeviceMappingProperty,
    user_data: str,
    tags: Mapping[str, str],
) -> ec2.CfnLaunchTemplate:
    """A launch template for an instance with one network interface and without Neuron devices.

    Args:
        tags: Tags of the template, and of the instance, volumes and network interface that are launched from it.
    """
    interface = ec2.CfnLaunchTemplate.NetworkInterfaceProperty(
        device_index=0,
        groups=[group.security_group_id for group in security_groups],
        delete_on_termination=True,
        associate_public_ip_address=False,
    )
    return ec2.CfnLaunchTemplate(
        scope,
        construct_id,
        launch_template_data=_Data(
            image_id=image_id,
            network_interfaces=[interface],
            block_device_mappings=[root_volume],
            metadata_options=_METADATA_OPTIONS,
            tag_specifications=Lazy.any(_TagSpecifications(tags)),
            user_data=Fn.base64(user_data),
        ),
        tag_specifications=_own_tags(tags),
    )


@jsii.implements(IStableAnyProducer)
class _TagSpecifications:
    """The tags of launched resources, which are known only after the aspects of the app have been applied."""

    def __init__(self, own_tags: Mapping[str, str], app_tags: TagManager | None = None) -> None:
        self._own_tags, self._app_tags = own_tags, app_tags

    def produce(self) -> Any:
        tags = {**self._own_tags, **(self._app_tags.tag_values() if self._app_tags else {}), **self._own_tags}
        rendered = [{"key": key, "value": value} for key, value in tags.items()]
        return [{"resourceType": kind, "tags": rendered} for kind in ("instance", "volume", "network-interface")]


def _own_tags(tags: Mapping[str, str]) -> list[ec2.CfnLaunchTemplate.LaunchTemplateTagSpecificationProperty]:
    """The tags of a launch template itself."""
    return [
        ec2.CfnLaunchTemplate.LaunchTemplateTagSpecificationProperty(
            resource_type="launch-template", tags=[CfnTag(key=key, value=value) for key, value in tags.items()]
        )
    ]


def _interface(
    interface: NetworkInterface, groups: list[str], *, is_only: bool
) -> ec2.CfnLaunchTemplate.NetworkInterfaceProperty:
    return ec2.CfnLaunchTemplate.NetworkInterfaceProperty(
        network_card_index=interface.card,
        device_index=interface.device,
        interface_type=interface.interface_type,
        groups=groups,
        delete_on_termination=True,
        # EC2 rejects this property if a request has several interfaces.
        associate_public_ip_address=False if is_only else None,
    )


def launch_market_type(capacity: Capacity) -> str | None:
    """The market type of instances of an Auto Scaling group; None for On-Demand Instances and reservations."""
    return capacity.kind if capacity.kind in ("spot", "capacity-block") else None


def _reservation(capacity: Capacity) -> ec2.CfnLaunchTemplate.CapacityReservationSpecificationProperty | None:
    if capacity.reservation_id is None:
        return None
    return ec2.CfnLaunchTemplate.CapacityReservationSpecificationProperty(
        capacity_reservation_target=ec2.CfnLaunchTemplate.CapacityReservationTargetProperty(
            capacity_reservation_id=capacity.reservation_id
        )
    )
