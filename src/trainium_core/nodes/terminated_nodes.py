"""How many running nodes a change set would terminate, and why."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from trainium_core.engines.registry import service_nodes
from trainium_core.problems import SETTING_PREFIX
from trainium_core.stacks.change_sets import ChangedProperty, ResourceChange
from trainium_runtime.launch_template_version import RESOURCE_TYPE, VersionChoice
from trainium_runtime.naming import FLEET_READINESS

GROUP, _TEMPLATE = "AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::LaunchTemplate"

_BY_REFERENCE = ("LaunchTemplateId", "Uses")
"""The properties of the launch template version that can refer to other resources of the stack."""

_USED = (
    _TEMPLATE,
    "AWS::EC2::PlacementGroup",
    "AWS::EC2::SecurityGroup",
    "AWS::EFS::FileSystem",
    "AWS::FSx::FileSystem",
    "AWS::IAM::InstanceProfile",
    "AWS::S3::Bucket",
)
"""The resource types to which the properties in _BY_REFERENCE may refer."""

_STEADY = frozenset({*_USED, "AWS::EC2::Subnet", "AWS::EC2::VPC", "AWS::IAM::Role", "AWS::KMS::Key"} - {_TEMPLATE})
"""Resource types whose IDs, names and ARNs change only if the resource is replaced."""

_CONDITIONAL_OF_GROUP = frozenset({"LaunchTemplate", "VPCZoneIdentifier"})
"""Properties for which CloudFormation says "Conditional" of a group although it updates the group in place.

The type's schema lists them as conditionalCreateOnlyProperties. They replace a group only with an UpdatePolicy, or if
they replace a launch configuration or Availability Zones. Our groups have none of these (2026-11-24).
"""


_LOGIN_NODE = (
    "the login node is replaced, and the files on it, such as those in /home, are lost: copy them first, or keep them "
    f"on a shared file system, for example with {SETTING_PREFIX}efs=new"
)


@dataclass(frozen=True, kw_only=True)
class TerminatedNodes:
    """The running nodes that a change set terminates.

    Attributes:
        count: The number of nodes.
        reasons: Why, each as a clause.
        template_changes: Whether the launch template changes, which running nodes do not adopt. False if all nodes
            are terminated, or if the nodes are those of a service.
        refused: Why the update would fail; empty if no reason is known.
    """

    count: int
    reasons: tuple[str, ...] = ()
    template_changes: bool = False
    refused: str = ""


def terminated_nodes(changes: Sequence[ResourceChange], *, running: int) -> TerminatedNodes:
    """Determine how many running nodes a change set terminates, and why.

    A change whose effect is unknown is assumed to terminate nodes.

    Args:
        changes: The changes of the change set.
        running: Number of running nodes of the stack.
    """
    if refused := next(_refused(changes), ""):
        return TerminatedNodes(count=0, refused=refused)
    reasons = list(dict.fromkeys(_all_end(changes)))
    if reasons and running:
        return TerminatedNodes(count=running, reasons=tuple(reasons))
    if running and any(_replaces_login_node(changes)):
        return TerminatedNodes(count=1, reasons=(_LOGIN_NODE,))
    of_service = any(change.kind == nodes.resource_type for change in changes for nodes in service_nodes())
    template_changes = any(change.kind == _TEMPLATE and change.action == "Modify" for change in changes)
    template_changes = template_changes and not of_service
    wanted = min([running, *_sizes(changes)])
    if wanted == running:
        return TerminatedNodes(count=0, template_changes=template_changes)
    reasons = (f"the plan has fewer nodes: {wanted}",)
    return TerminatedNodes(count=running - wanted, reasons=reasons, template_changes=template_changes)


def _refused(changes: Sequence[ResourceChange]) -> Iterator[str]:
    """Why the update would fail."""
    others = _ReplacedResources(changes)
    named = {kind for nodes in service_nodes() for kind in nodes.named}
    for change in changes:
        # Another cluster has other groups.
        keeps_name = not change.properties.keys() & {"Name", "ClusterId"}
        if change.kind in named and change.action == "Modify" and others.is_new(change) and keeps_name:
            changed = ", ".join(sorted(name for name, value in change.properties.items() if value.recreates))
            yield (
                f"{changed or 'a property'} of {change.kind} cannot change, and another resource with the same name "
                f"cannot be created: set another {SETTING_PREFIX}cluster_name too"
            )


def _replaces_login_node(changes: Sequence[ResourceChange]) -> Iterator[bool]:
    others = _ReplacedResources(changes)
    for nodes in service_nodes():
        for change in changes:
            if change.kind == nodes.resource_type and nodes.login_group in change.logical_id:
                new = change.action != "Add" and [v for k, v in change.properties.items() if k != "Tags"]
                yield change.action == "Remove" or bool(new and not all(map(others.stays, new)))


def _all_end(changes: Sequence[ResourceChange]) -> Iterator[str]:
    """The reasons why the change set terminates all nodes, if it does."""
    others = _ReplacedResources(changes)
    called = {nodes.resource_type: nodes.called for nodes in service_nodes()}
    new = sorted({change.kind for change in changes if change.kind in _USED and others.is_new(change)})
    for change in changes:
        if change.kind == GROUP:
            if change.action == "Remove":
                yield "their Auto Scaling group is removed"
            if others.is_new(change):
                yield "their Auto Scaling group is replaced"
            if "VPCZoneIdentifier" in change.properties and not others.stays(change.properties["VPCZoneIdentifier"]):
                yield "they move to another subnet"
        is_login = any(nodes.login_group in change.logical_id for nodes in service_nodes())
        if change.kind in called and not is_login and (change.action == "Remove" or others.is_new(change)):
            changed = f", since {', '.join(sorted(change.properties))} cannot change" if change.properties else ""
            yield f"their {called[change.kind]} is {'removed' if change.action == 'Remove' else 'replaced'}{changed}"
        if change.kind == RESOURCE_TYPE:
            if change.action == "Add":
                yield "the version of their launch template is chosen for the first time"
            if "Settings" in change.properties:
                changed = ", ".join(f"{SETTING_PREFIX}{key}" for key in _changed_keys(change, "Settings"))
                yield f"a setting that requires new nodes has changed: {changed or 'see `cdk diff`'}"
            uses = [change.properties[name] for name in _BY_REFERENCE if name in change.properties]
            if new and not all(others.stays(used) for used in uses):
                yield f"they will use new resources: {', '.join(new)}"
            elif "Uses" in change.properties and change.properties["Uses"].certain:
                yield f"their resources have changed: {', '.join(_changed_keys(change, 'Uses')) or 'see `cdk diff`'}"
            if "ImageSetting" in change.properties and _image_after(change) != _image_now(change):
                yield "they boot another image"


class _ReplacedResources:
    """Which resources of a change set are replaced.

    CloudFormation does not determine this for every resource. It lists a resource that refers to a changing resource as
    possibly changing, with the replacement "Conditional".
    """

    def __init__(self, changes: Sequence[ResourceChange]) -> None:
        self._changes = {change.logical_id: change for change in changes if change.logical_id}

    def is_new(self, change: ResourceChange) -> bool:
        """Whether a resource is added or replaced. A change whose effect is unknown counts as a replacement."""
        if change.replacement != "Conditional":
            return change.action == "Add" or change.replacement == "True"
        in_place = _CONDITIONAL_OF_GROUP if change.kind == GROUP else frozenset[str]()
        deciding = [value for name, value in change.properties.items() if value.recreates and name not in in_place]
        if not deciding and change.properties:
            return not (in_place & change.properties.keys())
        return not deciding or not all(map(self.stays, deciding))

    def stays(self, value: ChangedProperty) -> bool:
        """Whether a property certainly keeps its value, because everything that it refers to keeps its IDs."""
        causes = [self._changes.get(cause) for cause in value.causes]
        return bool(causes) and not value.certain and all(change and self._keeps_its_ids(change) for change in causes)

    def _keeps_its_ids(self, change: ResourceChange) -> bool:
        return change.kind in _STEADY and change.action == "Modify" and not self.is_new(change)


def _changed_keys(version: ResourceChange, name: str) -> list[str]:
    """Changed keys of a property; empty if the change set does not show both values in full."""
    values = version.properties[name]
    before, after = _mapping(values.before), _mapping(values.after)
    if before is None or after is None:
        return []
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def _mapping(text: str | None) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text or "")
    except ValueError:
        return None
    return cast(Mapping[str, Any], found) if isinstance(found, dict) else None


def _image_now(version: ResourceChange) -> str | None:
    chosen = VersionChoice.remembered(version.physical_id)
    return chosen.image if chosen else None


def _image_after(version: ResourceChange) -> str | None:
    """None if the change set does not show the image: a changed parameter may resolve to the same image."""
    if "Image" in version.properties:
        return version.properties["Image"].after
    named = version.properties["ImageSetting"].after
    return named if named and named.startswith("ami-") else None


def _sizes(changes: Sequence[ResourceChange]) -> Iterator[int]:
    for change in changes:
        for kind, name in ((GROUP, "MaxSize"), (FLEET_READINESS, "Nodes")):
            after = change.properties[name].after if change.kind == kind and name in change.properties else None
            if after and after.isdigit():
                yield int(after)
