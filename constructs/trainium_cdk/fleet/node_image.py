"""The machine image and placement group of nodes."""

import json
import re
from dataclasses import dataclass

from aws_cdk import Stack, Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.checks import check, check_same_region, first_line, form, refuse
from trainium_cdk.fleet.capacity import Capacity
from trainium_core.catalog.instance_type import InstanceType
from trainium_core.catalog.neuron_software import default_image
from trainium_core.facts import facts
from trainium_core.plan.node_settings import NodeSettings
from trainium_core.plan.settings.node import NeuronSoftware
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_runtime.naming import CLUSTER_TAG

_ROOT_DEVICE: str = SETTINGS["root_device_name"].default


@dataclass(frozen=True)
class NodeImage:
    """The machine image of nodes: `dlami()`, `custom(machine_image)` or `install_on(machine_image)`.

    Attributes:
        source: An image of the CDK, an AMI ID, or the name of an SSM parameter. None: the newest Neuron DLAMI.
        neuron_software: `image` if the image has driver, runtime and tools, `install` if nodes install them.
        root_device_name: Root device of the image.

    Raises:
        PropsError: The name of the root device is invalid.

    Example:

        newest = NodeImage.dlami()
        golden = NodeImage.custom(ec2.MachineImage.lookup(name="golden-*"))
        bare = NodeImage.install_on(ec2.MachineImage.latest_amazon_linux2023(), root_device_name="/dev/xvda")
    """

    source: ec2.IMachineImage | str | None
    neuron_software: NeuronSoftware
    root_device_name: str

    def __post_init__(self) -> None:
        check("NodeImage", form("root_device_name", self.root_device_name))

    @staticmethod
    def dlami() -> "NodeImage":
        """The newest Neuron DLAMI at the first deployment, and again when a change replaces all nodes."""
        return NodeImage(None, "image", _ROOT_DEVICE)

    @staticmethod
    def custom(machine_image: ec2.IMachineImage, *, root_device_name: str | None = None) -> "NodeImage":
        """An image with driver, runtime and tools.

        Args:
            machine_image: The image.
            root_device_name: Root device of the image. Default: /dev/sda1.

        Raises:
            PropsError: The name of the root device is invalid.
        """
        return NodeImage(machine_image, "image", root_device_name or _ROOT_DEVICE)

    @staticmethod
    def install_on(machine_image: ec2.IMachineImage, *, root_device_name: str | None = None) -> "NodeImage":
        """A bare image on which nodes install driver, runtime and tools.

        Args:
            machine_image: An image of Ubuntu 24.04 or Amazon Linux 2023.
            root_device_name: Root device of the image. Default: /dev/sda1.

        Raises:
            PropsError: The name of the root device is invalid.
        """
        return NodeImage(machine_image, "install", root_device_name or _ROOT_DEVICE)


def node_image_id(construct: Construct, image: NodeImage, kind: InstanceType) -> str:
    """The ID of an image for an instance type.

    Raises:
        PropsError: The image has no ID in the stack's region, is a Windows image, has user data, or is for arm64.
    """
    source = image.source
    if source is None or isinstance(source, str):
        return _resolved_image_id(construct, source or default_image(kind))
    try:
        config = source.get_image(construct)
    except RuntimeError as error:
        allowed = "an image of the stack's region"
        fix = f"pass an image of that region; the CDK reports: {first_line(error)}"
        raise refuse(construct, "image", source, allowed=allowed, fix=fix) from None
    if config.os_type == ec2.OperatingSystemType.WINDOWS:
        fix = "choose an image of Ubuntu or Amazon Linux, or remove `image` for the Neuron DLAMI"
        raise refuse(construct, "image", "a Windows image", allowed="a Linux image", fix=fix)
    if config.user_data.render() != ec2.UserData.for_linux().render():
        fix = "remove its user_data: nodes run the script in `setup`"
        raise refuse(construct, "image", "an image with user_data", allowed="an image without user_data", fix=fix)
    if "arm64" in _reference(construct, config.image_id):  # the parameter of Systems Manager that holds the ID
        allowed = "an image for x86_64, the architecture of all instance types of the catalogue"
        fix = "choose an image for x86_64, or remove `image` for the Neuron DLAMI"
        raise refuse(construct, "image", "an image for arm64", allowed=allowed, fix=fix)
    return config.image_id


def check_neuron_software(construct: Construct, image: NodeImage, image_id: str) -> None:
    """Raise PropsError for the image of a publisher whose images have no Neuron software, unless nodes install it.

    Args:
        construct: A construct in the stack of the nodes.
        image: The image.
        image_id: The ID of the image.
    """
    # The CDK refers to a parameter by a logical ID, which has the letters and digits of the parameter's name.
    reference = _letters(_reference(construct, image_id))
    is_bare = any(_letters(prefix) in reference for prefix in facts()["bare_images"]["publishers"])
    if image.neuron_software == "image" and is_bare:
        allowed = "an image with driver, runtime and tools"
        fix = "pass NodeImage.install_on(machine_image), whose nodes install them, or remove `image`"
        raise refuse(construct, "image", "an image without Neuron software", allowed=allowed, fix=fix)


def _letters(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "", text)


def image_name(construct: Construct, image: NodeImage, image_id: str) -> str:
    """The app's reference to an image, which changes with the image; empty for the Neuron DLAMI.

    Args:
        construct: A construct in the stack of the nodes.
        image: The image.
        image_id: The ID of the image.
    """
    if image.source is None or isinstance(image.source, str):
        return image.source or ""
    return _reference(construct, image_id)


def _resolved_image_id(construct: Construct, ami: str) -> str:
    """The ID of an image, given by its ID or by the name of an SSM parameter."""
    if not ami.startswith("/"):
        return ami
    return ec2.MachineImage.from_ssm_parameter(ami).get_image(construct).image_id


def _reference(construct: Construct, image_id: str) -> str:
    """The ID of an image, or the text of the token for it."""
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
