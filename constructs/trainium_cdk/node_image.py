"""What nodes boot, and the placement group that they are in, as parameters give them."""

import json
from dataclasses import dataclass

from aws_cdk import Stack, Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.arguments import check_object, check_same_region
from trainium_cdk.fleet_plan import KNOWN_LATER
from trainium_cdk.props_error import first_line, refuse


@dataclass(frozen=True, kw_only=True)
class NodeImage:
    """id_in_plan: None for the plan's own. name: how the app names it, to compare with another one."""

    id_in_plan: str | None = None
    image_id: str | None = None
    name: str | None = None


def node_image(construct: Construct, image: ec2.IMachineImage | None) -> NodeImage:
    """What a parameter `machine_image` means. Raises PropsError for what is none."""
    if image is None:
        return NodeImage()
    check_object(construct, "machine_image", image, has="get_image", what="an ec2.IMachineImage")
    try:
        found = image.get_image(construct)
    except RuntimeError as error:
        allowed = "an image of the stack's region"
        raise refuse(construct, "machine_image", image, allowed=allowed, fix=first_line(error)) from None
    if found.os_type == ec2.OperatingSystemType.WINDOWS:
        allowed = "an image of Linux, on which Neuron runs"
        raise refuse(construct, "machine_image", "Windows", allowed=allowed, fix="leave it out for the Neuron DLAMI")
    if found.user_data.render() != ec2.UserData.for_linux().render():
        fix = "leave out its user_data: what nodes run is a parameter of its own here"
        raise refuse(construct, "machine_image", "an image with user_data", allowed="an image alone", fix=fix)
    image_id = found.image_id
    if Token.is_unresolved(image_id):
        name = json.dumps(Stack.of(construct).resolve(image_id), sort_keys=True)
        if "arm64" in name:  # the parameter of Systems Manager that holds the id
            allowed = "an image for x86_64, which is what instances with Neuron devices are"
            fix = "choose that architecture, or leave it out for the Neuron DLAMI"
            raise refuse(construct, "machine_image", name, allowed=allowed, fix=fix)
        return NodeImage(id_in_plan=f"ami-{KNOWN_LATER}", image_id=image_id, name=name)
    return NodeImage(id_in_plan=image_id, image_id=image_id, name=image_id)


def placement_group_name_of(construct: Construct, group: ec2.IPlacementGroup | None) -> str | None:
    """What a parameter `placement_group` means. Raises PropsError for what is none."""
    if group is None:
        return None
    check_object(construct, "placement_group", group, has="placement_group_name", what="an ec2.IPlacementGroup")
    check_same_region(construct, "placement_group", group, what="a placement group")
    if group.strategy not in (None, ec2.PlacementGroupStrategy.CLUSTER):
        allowed = "a group of the strategy CLUSTER, in which EFA has its speed"
        fix = "give it strategy=ec2.PlacementGroupStrategy.CLUSTER, or leave it out for a new one"
        raise refuse(construct, "placement_group", f"{group.node.path}, {group.strategy}", allowed=allowed, fix=fix)
    return group.placement_group_name
