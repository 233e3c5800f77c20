"""Reads and deletes change sets in CloudFormation."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainium_core.stacks.aws_stacks import NO_STACK, AwsStackReader
from trainium_core.stacks.change_sets import ChangedProperty, ResourceChange
from trainium_runtime.aws_errors import read_errors, write_errors

_ABSENT = (*NO_STACK, "ChangeSetNotFound")


class AwsChangeSets(AwsStackReader):
    """Methods that read raise UnavailableError if a request fails or is denied."""

    def changes(self, stack: str, change_set: str) -> Sequence[ResourceChange]:
        """The changes in a change set; none if it does not exist: the CDK CLI deletes change sets without changes."""
        with read_errors("cloudformation:DescribeChangeSet", absent=_ABSENT):
            pages = self.client("cloudformation").get_paginator("describe_change_set")
            arguments = {"StackName": stack, "ChangeSetName": change_set, "IncludePropertyValues": True}
            listed = [change for page in pages.paginate(**arguments) for change in page.get("Changes", [])]
            return [_change(change) for change in listed if change["Type"] == "Resource"]
        return []

    def delete_change_set(self, stack: str, change_set: str) -> None:
        """Delete a change set, if it exists. Raises RequestRefusedError."""
        with write_errors("cloudformation:DeleteChangeSet", absent=_ABSENT):
            self.client("cloudformation").delete_change_set(StackName=stack, ChangeSetName=change_set)


def _change(entry: Mapping[str, Any]) -> ResourceChange:
    change = entry["ResourceChange"]
    properties: dict[str, ChangedProperty] = {}
    for detail in change.get("Details", []):
        target = detail["Target"]
        if "Name" in target:
            properties[target["Name"]] = _with_detail(properties.get(target["Name"], ChangedProperty()), detail)
    return ResourceChange(
        kind=change["ResourceType"],
        action=change["Action"],
        logical_id=change["LogicalResourceId"],
        physical_id=change.get("PhysicalResourceId", ""),
        replacement=change.get("Replacement", "False"),
        properties=properties,
    )


def _with_detail(known: ChangedProperty, detail: Mapping[str, Any]) -> ChangedProperty:
    """Merge a detail into what is known of a property. A property has one detail for each cause of its change."""
    target, certain = detail["Target"], detail["Evaluation"] == "Static"
    cause = detail.get("CausingEntity", "").partition(".")[0]
    return ChangedProperty(
        before=known.before or target.get("BeforeValue"),
        after=target.get("AfterValue") if certain else known.after,
        certain=known.certain or certain,
        causes=known.causes if certain or not cause else known.causes | {cause},
        recreates=known.recreates or target.get("RequiresRecreation", "Never") != "Never",
    )
