"""The launch template that is right for each Trainium type."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import jsii
from aws_cdk import CfnTag, Fn, IStableAnyProducer, ITaggable, Lazy, Size, Stack, TagManager, TagType
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from trainium_cdk.arguments import check_object, check_type
from trainium_cdk.capacity import Capacity
from trainium_cdk.cdk_types import Key
from trainium_cdk.encryption_key import check_key
from trainium_cdk.fleet_names import generated_cluster_name
from trainium_cdk.fleet_plan import KNOWN_LATER, check_card_interfaces, gibibytes, node_settings, plan_of
from trainium_cdk.node_image import node_image, placement_group_name_of
from trainium_cdk.node_volumes import block_device_mappings
from trainium_cdk.props_error import refuse
from trainium_cdk.security_group import check_groups, may_carry_efa
from trainium_core.catalog.catalog import Catalog
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plan.network_layout import NetworkInterface, network_interfaces
from trainium_core.plan.settings.network import CardInterfaceType
from trainium_runtime.naming import CLUSTER_TAG

Data = ec2.CfnLaunchTemplate.LaunchTemplateDataProperty

METADATA_OPTIONS = ec2.CfnLaunchTemplate.MetadataOptionsProperty(
    http_endpoint="enabled",
    http_tokens="required",
    # One hop more than the node itself: containers ask too.
    http_put_response_hop_limit=2,
)


@jsii.implements(ITaggable)
class PlannedLaunchTemplate(Construct):
    """The launch template of a plan. NeuronLaunchTemplate says what its attributes are.

    An L1 resource: the L2 knows neither network cards nor Capacity Blocks. Tags of the app are on instances, volumes
    and network interfaces too.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: Plan,
        security_groups: Sequence[ec2.ISecurityGroup],
        instance_profile: iam.IInstanceProfile,
        user_data: str,
        placement_group_name: str | None = None,
        image_id: str | None = None,
        volume_key: Key | None = None,
        block_devices: Sequence[ec2.BlockDevice] = (),
    ) -> None:
        """image_id: Default: the image of the plan."""
        super().__init__(scope, construct_id)
        self._make(
            plan,
            security_groups=security_groups,
            instance_profile=instance_profile,
            user_data=user_data,
            placement_group_name=placement_group_name,
            image_id=image_id,
            volume_key=volume_key,
            block_devices=block_devices,
        )

    @property
    def tags(self) -> TagManager:
        """What `Tags.of(...)` puts on the launch template, and on what is launched from it."""
        return self._tags

    def _make(
        self,
        plan: Plan,
        *,
        security_groups: Sequence[ec2.ISecurityGroup],
        instance_profile: iam.IInstanceProfile,
        user_data: str,
        placement_group_name: str | None,
        image_id: str | None,
        volume_key: Key | None,
        block_devices: Sequence[ec2.BlockDevice],
    ) -> None:
        if plan.uses_efa and not any(map(may_carry_efa, security_groups)):
            paths = ", ".join(one.node.path for one in security_groups) or None
            raise refuse(
                self,
                "security_groups",
                paths,
                allowed="a group that lets all traffic in from itself and out to itself, without which EFA is silent",
                fix="add an EfaSecurityGroup",
            )
        self._tags = TagManager(TagType.KEY_VALUE, "AWS::EC2::LaunchTemplate")
        tags = {**plan.tags, CLUSTER_TAG: plan.cluster_name, "Name": f"{plan.cluster_name}-node"}
        groups = [group.security_group_id for group in security_groups]
        interfaces = network_interfaces(plan)
        self.image_id = image_id or _image_id(self, plan)
        further = block_device_mappings(self, block_devices, root_device_name=plan.root_device_name, key=volume_key)
        self.block_devices_text = json.dumps(Stack.of(self).resolve(further), sort_keys=True)
        self.template = ec2.CfnLaunchTemplate(
            self,
            "Resource",
            launch_template_data=Data(
                instance_type=plan.instance_type,
                image_id=self.image_id,
                iam_instance_profile=ec2.CfnLaunchTemplate.IamInstanceProfileProperty(
                    arn=instance_profile.instance_profile_arn
                ),
                network_interfaces=[
                    _interface(interface, groups, alone=len(interfaces) == 1) for interface in interfaces
                ],
                block_device_mappings=[root_volume(plan, volume_key), *further],
                metadata_options=METADATA_OPTIONS,
                placement=ec2.CfnLaunchTemplate.PlacementProperty(group_name=placement_group_name)
                if placement_group_name
                else None,
                instance_market_options=_market(plan),
                capacity_reservation_specification=_reservation(plan),
                tag_specifications=Lazy.any(TagSpecifications(tags, self._tags)),
                user_data=Fn.base64(user_data),
            ),
            tag_specifications=[
                ec2.CfnLaunchTemplate.LaunchTemplateTagSpecificationProperty(
                    resource_type="launch-template", tags=_tags(tags)
                )
            ],
        )


class NeuronLaunchTemplate(PlannedLaunchTemplate):
    """A launch template for Trainium nodes of your own, with a network interface for each network card.

    Tags of the app are on instances, volumes and network interfaces too. `template` is the CDK object, `image_id` what
    it boots.

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

    template: ec2.CfnLaunchTemplate
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
        machine_image: ec2.IMachineImage | None = None,
        root_device_name: str | None = None,
        root_volume_size: Size | None = None,
        root_volume_throughput: int | None = None,
        root_volume_initialization_rate: int | None = None,
        block_devices: Sequence[ec2.BlockDevice] = (),
        volume_key: Key | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        """
        instance_type: type of every node, one that the region of the stack offers.
        security_groups: on every interface; one of them must be an EfaSecurityGroup where the type has EFA.
        instance_profile: the nodes' role.
        user_data: what the nodes run at their first boot. Default: nothing.
        cluster_name: 1 to 32 lower-case letters, digits and hyphens; the tag trn:cluster on what is launched.
            Default: made of the construct's path.
        capacity: how the instances are bought. Default: Capacity.on_demand().
        placement_group: a cluster placement group, which EFA needs for its speed. Default: none.
        secondary_interface_type: of network cards after the first; efa-only takes no IP address. Default: efa.
        machine_image: what the nodes boot. Default: the newest Neuron DLAMI at the deployment.
        root_device_name: of the image. Default: /dev/sda1.
        root_volume_size: of the gp3 root volume. Default: 512 GiB.
        root_volume_throughput: of the root volume, in MiB/s. Default: 500.
        root_volume_initialization_rate: MiB/s at which the image's blocks come to a new root volume, billed per GiB.
            Default: what EBS gives.
        block_devices: volumes besides the root volume, encrypted unless told otherwise. Default: none.
        volume_key: key that volumes are encrypted with. Default: the account's own for EBS.
        catalog: instance types with your own. Default: the built-in catalogue.

        Raises PropsError with everything that is wrong, by the names of these parameters.
        """
        Construct.__init__(self, scope, construct_id)
        settings = node_settings(
            self,
            instance_type=instance_type,
            cluster_name=generated_cluster_name(self) if cluster_name is None else cluster_name,
            capacity=capacity,
            catalog=catalog,
        )
        image = node_image(self, machine_image)
        group = placement_group_name_of(self, placement_group)
        if user_data is not None:
            check_type(self, "user_data", user_data, ec2.UserData, what="an ec2.UserData, such as UserData.for_linux()")
        check_key(self, "volume_key", volume_key)
        check_groups(self, security_groups, vpc=None)
        if not security_groups:
            fix = "give one: without, EC2 takes the default group of the VPC"
            raise refuse(self, "security_groups", "an empty list", allowed="at least one group", fix=fix)
        what = "an iam.IInstanceProfile"
        check_object(self, "instance_profile", instance_profile, has="instance_profile_arn", what=what)
        plan = plan_of(
            self,
            {
                **settings,
                "vpc_id": f"vpc-{KNOWN_LATER}",
                "subnet_id": f"subnet-{KNOWN_LATER}",
                "ami": image.id_in_plan,
                "placement_group": None if group is None else "known to CloudFormation",
                "secondary_interface_type": secondary_interface_type,
                "root_device_name": root_device_name,
                "root_volume_gib": gibibytes(self, "root_volume_size", root_volume_size),
                "root_volume_throughput": root_volume_throughput,
                "root_volume_initialization": root_volume_initialization_rate,
            },
            {"capacity": capacity, "root_volume_size": root_volume_size},
        )
        check_card_interfaces(self, secondary_interface_type, plan)
        text, limit = "" if user_data is None else user_data.render(), facts()["user_data"]["limit_bytes"]
        if text.startswith("<powershell>"):
            fix = "give ec2.UserData.for_linux()"
            raise refuse(self, "user_data", "that of Windows", allowed="an ec2.UserData of Linux", fix=fix)
        if len(text.encode()) > limit:
            allowed = f"up to {limit} bytes, as EC2 takes"
            fix = "put what is long into S3, and fetch it"
            raise refuse(self, "user_data", f"{len(text.encode())} bytes", allowed=allowed, fix=fix)
        self._make(
            plan,
            security_groups=security_groups,
            instance_profile=instance_profile,
            user_data=text,
            placement_group_name=group,
            image_id=image.image_id,
            volume_key=volume_key,
            block_devices=block_devices,
        )


@jsii.implements(IStableAnyProducer)
class TagSpecifications:
    """The tags of what is launched, which are known once the aspects of the app have been applied."""

    def __init__(self, own: Mapping[str, str], of_the_app: TagManager) -> None:
        self._own, self._of_the_app = own, of_the_app

    def produce(self) -> Any:
        tags = {**self._own, **self._of_the_app.tag_values(), **self._own}
        rendered = [{"key": key, "value": value} for key, value in tags.items()]
        return [{"resourceType": kind, "tags": rendered} for kind in ("instance", "volume", "network-interface")]


def _image_id(scope: Construct, plan: Plan) -> str:
    if not plan.ami_is_parameter:
        return plan.ami
    return ec2.MachineImage.from_ssm_parameter(plan.ami).get_image(scope).image_id


def _interface(
    interface: NetworkInterface, groups: list[str], *, alone: bool
) -> ec2.CfnLaunchTemplate.NetworkInterfaceProperty:
    return ec2.CfnLaunchTemplate.NetworkInterfaceProperty(
        network_card_index=interface.card,
        device_index=interface.device,
        interface_type=interface.interface_type,
        groups=groups,
        delete_on_termination=True,
        # EC2 refuses the very property when a request has several interfaces.
        associate_public_ip_address=False if alone else None,
    )


def root_volume(plan: Plan, key: Key | None) -> ec2.CfnLaunchTemplate.BlockDeviceMappingProperty:
    """Of every instance of a plan. key: that it is encrypted with; None: the account's own for EBS."""
    return ec2.CfnLaunchTemplate.BlockDeviceMappingProperty(
        device_name=plan.root_device_name,
        ebs=ec2.CfnLaunchTemplate.EbsProperty(
            volume_size=plan.root_volume_gib,
            volume_type="gp3",
            throughput=plan.root_volume_throughput,
            volume_initialization_rate=plan.root_volume_initialization,
            encrypted=True,
            kms_key_id=None if key is None else key.key_arn,
            delete_on_termination=True,
        ),
    )


def _market(plan: Plan) -> ec2.CfnLaunchTemplate.InstanceMarketOptionsProperty | None:
    if plan.capacity not in ("spot", "capacity-block"):
        return None
    return ec2.CfnLaunchTemplate.InstanceMarketOptionsProperty(market_type=plan.capacity)


def _reservation(plan: Plan) -> ec2.CfnLaunchTemplate.CapacityReservationSpecificationProperty | None:
    if plan.reservation_id is None:
        return None
    return ec2.CfnLaunchTemplate.CapacityReservationSpecificationProperty(
        capacity_reservation_target=ec2.CfnLaunchTemplate.CapacityReservationTargetProperty(
            capacity_reservation_id=plan.reservation_id
        )
    )


def _tags(tags: Mapping[str, str]) -> list[CfnTag]:
    return [CfnTag(key=key, value=value) for key, value in tags.items()]
