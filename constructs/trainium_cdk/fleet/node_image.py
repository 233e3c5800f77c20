"""The machine image and placement group of nodes."""

import json

from aws_cdk import Stack, Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.checks import check_same_region, first_line, refuse
from trainium_cdk.fleet.capacity import Capacity
from trainium_core.catalog.instance_type import InstanceType
from trainium_core.catalog.neuron_software import default_image
from trainium_core.plan.node_settings import NodeSettings
from trainium_runtime.naming import CLUSTER_TAG


def node_image_id(construct: Construct, image: ec2.IMachineImage | None, kind: InstanceType) -> str:
    """The ID of an image, by default the newest Neuron DLAMI for the instance type.

    Raises:
        PropsError: The image has no ID in the stack's region, is a Windows image, has user data, or is for arm64.
    """
    if image is None:
        return resolved_image_id(construct, default_image(kind))
    try:
        config = image.get_image(construct)
    except RuntimeError as error:
        allowed = "an image of the stack's region"
        fix = f"pass an image of that region; the CDK reports: {first_line(error)}"
        raise refuse(construct, "machine_image", image, allowed=allowed, fix=fix) from None
    if config.os_type == ec2.OperatingSystemType.WINDOWS:
        fix = "choose an image of Ubuntu or Amazon Linux, or remove machine_image for the Neuron DLAMI"
        raise refuse(construct, "machine_image", "a Windows image", allowed="a Linux image", fix=fix)
    if config.user_data.render() != ec2.UserData.for_linux().render():
        fix = "remove its user_data: nodes run the script in `setup`"
        allowed = "an image without user_data"
        raise refuse(construct, "machine_image", "an image with user_data", allowed=allowed, fix=fix)
    name = image_name(construct, config.image_id)
    if "arm64" in name:  # the parameter of Systems Manager that holds the ID
        allowed = "an image for x86_64, the architecture of all instance types of the catalogue"
        fix = "choose an image for x86_64, or remove machine_image for the Neuron DLAMI"
        raise refuse(construct, "machine_image", "an image for arm64", allowed=allowed, fix=fix)
    return config.image_id


def resolved_image_id(construct: Construct, ami: str) -> str:
    """The ID of an image, given by its ID or by the name of an SSM parameter."""
    if not ami.startswith("/"):
        return ami
    return ec2.MachineImage.from_ssm_parameter(ami).get_image(construct).image_id


def image_name(construct: Construct, image_id: str) -> str:
    """The ID of an image, or the text of the token for it. Another text in a later deployment means another image."""
    if not Token.is_unresolved(image_id):
        return image_id
    return json.dumps(Stack.of(construct).resolve(image_id), sort_keys=True)


def known_placement_group_name(construct: Construct, group: ec2.IPlacementGroup | None) -> str | None:
    """The name of a placement group. Raises PropsError if it has another strategy or region."""
    if group is None:
        return None
    check_same_region(construct, "placement_group", group, what="a placement group")
    if group.strategy not in (None, ec2.PlacementGroupStrategy.CLUSTER):
        allowed = "a group of the strategy CLUSTER, which EFA needs for its full speed"
        fix = "create it with strategy=ec2.PlacementGroupStrategy.CLUSTER, or remove placement_group for a new one"
        raise refuse(construct, "placement_group", f"{group.node.path}, {group.strategy}", allowed=allowed, fix=fix)
    return group.placement_group_name


def new_placement_group(construct: Construct, node: NodeSettings, capacity: Capacity) -> str | None:
    """The name of a new cluster placement group.

    None without EFA, and for Capacity Blocks and reservations, whose capacity is not in a new group.
    """
    if not node.uses_efa or capacity.kind not in ("on-demand", "spot"):
        return None
    group = ec2.CfnPlacementGroup(construct, "PlacementGroup", strategy="cluster")
    # Its tags are create-only: a new tag of the app would replace the group, and with it the nodes.
    group.add_property_override("Tags", [{"Key": CLUSTER_TAG, "Value": node.cluster_name}])
    return group.attr_group_name
