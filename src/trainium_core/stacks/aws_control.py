"""Reads the existing and deleted stacks of a cluster, and deletes stacks."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from trainium_core.stacks.aws_stacks import AwsStackTemplates, cluster_of
from trainium_core.stacks.cluster_resources import TemplateResources, resources_of
from trainium_core.stacks.description import MadeResource, StackDescription, StackProgress
from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.naming import CLUSTER_TAG
from trainium_runtime.tags import tag_values

_NO_STACK = ("does not exist",)
_SETTLED = ("DELETE_COMPLETE", "DELETE_SKIPPED")
_KEEPS = ("Retain", "RetainExceptOnCreate")


class AwsStackControl(AwsStackTemplates):
    """Implements trainium_core.stacks.description.Stacks."""

    def existing_stacks(self, names: Sequence[str]) -> Sequence[StackDescription]:
        return list(self._existing(names))

    def deleted_stacks(self, names: Sequence[str]) -> Sequence[StackDescription]:
        return list(self._deleted(names))

    def stack_progress(self, stack_id: str) -> StackProgress:
        with read_errors("cloudformation:DescribeStacks", absent=_NO_STACK):
            (found,) = self.client("cloudformation").describe_stacks(StackName=stack_id)["Stacks"]
            status = found["StackStatus"]
            if status == "DELETE_COMPLETE":
                return StackProgress(status=status)
            left = [entry for entry in self._entries(stack_id) if entry["ResourceStatus"] not in _SETTLED]
            failures = self._failures(stack_id) if status == "DELETE_FAILED" else ()
            return StackProgress(status=status, left=len(left), failures=tuple(failures))
        return StackProgress(status="DELETE_COMPLETE")

    def delete_stack(self, stack_id: str) -> None:
        with write_errors("cloudformation:DeleteStack", absent=_NO_STACK):
            self.client("cloudformation").delete_stack(StackName=stack_id)

    def stack_containing(self, resource_id: str) -> str | None:
        with read_errors("cloudformation:DescribeStackResources", absent=_NO_STACK):
            answer = self.client("cloudformation").describe_stack_resources(PhysicalResourceId=resource_id)
            there = [one["StackName"] for one in answer["StackResources"] if one["ResourceStatus"] not in _SETTLED]
            return there[0] if there else None
        return None

    def _existing(self, names: Sequence[str]) -> Iterator[StackDescription]:
        for name in names:
            with read_errors("cloudformation:DescribeStacks", absent=_NO_STACK):
                (found,) = self.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
                template = self.template_resources(found["StackId"], found["StackStatus"])
                has = self._has(found["StackId"], template, _others(found, template))
                yield _described(found, template, tuple(has))

    def _has(self, stack_id: str, template: TemplateResources, others: Collection[str]) -> Iterator[MadeResource]:
        kept = {name for name, made in template.items() if made.get("DeletionPolicy") in _KEEPS}
        for entry in self._entries(stack_id):
            yield MadeResource(
                kind=entry["ResourceType"],
                resource_id=entry.get("PhysicalResourceId", ""),
                kept=entry["LogicalResourceId"] in kept,
                gone=entry["ResourceStatus"] == "DELETE_COMPLETE",
                other=entry["LogicalResourceId"] in others,
            )

    def _entries(self, stack_id: str) -> Sequence[Mapping[str, Any]]:
        with read_errors("cloudformation:ListStackResources", absent=_NO_STACK):
            pages = self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack_id)
            return [entry for page in pages for entry in page["StackResourceSummaries"]]
        return []

    def _deleted(self, names: Sequence[str]) -> Iterator[StackDescription]:
        with read_errors("cloudformation:ListStacks"):
            pages = self.client("cloudformation").get_paginator("list_stacks")
            summaries = [
                summary
                for page in pages.paginate(StackStatusFilter=["DELETE_COMPLETE"])
                for summary in page["StackSummaries"]
                if summary["StackName"] in names
            ]
        for summary in summaries:
            stack_id = summary["StackId"]
            with read_errors("cloudformation:DescribeStacks", absent=_NO_STACK):
                (found,) = self.client("cloudformation").describe_stacks(StackName=stack_id)["Stacks"]
                template = self.template_resources(found["StackId"], found["StackStatus"])
                yield _described(found, template, tuple(self._had(stack_id, _others(found, template))))

    def _had(self, stack_id: str, others: Collection[str]) -> Iterator[MadeResource]:
        """The resources of a deleted stack, from the last event of each."""
        last: dict[tuple[str, str], Mapping[str, Any]] = {}
        for event in self._events(stack_id):  # the newest first
            last.setdefault((event["ResourceType"], event.get("PhysicalResourceId", "")), event)
        for (kind, resource_id), event in last.items():
            if resource_id not in ("", stack_id):
                status = event["ResourceStatus"]
                kept, gone = status == "DELETE_SKIPPED", status == "DELETE_COMPLETE"
                other = event["LogicalResourceId"] in others
                yield MadeResource(kind=kind, resource_id=resource_id, kept=kept, gone=gone, other=other)

    def _failures(self, stack_id: str) -> Iterator[str]:
        """Why the last deletion of the stack failed, by resource."""
        for event in self._events(stack_id):
            of_the_stack = event.get("PhysicalResourceId") == stack_id
            if of_the_stack and event["ResourceStatus"] == "DELETE_IN_PROGRESS":
                return
            if not of_the_stack and event["ResourceStatus"] == "DELETE_FAILED":
                what = f"{event['ResourceType']} {event.get('PhysicalResourceId') or event['LogicalResourceId']}"
                yield f"{what}: {event.get('ResourceStatusReason', 'no reason given')}"

    def _events(self, stack_id: str) -> Iterator[Mapping[str, Any]]:
        with read_errors("cloudformation:DescribeStackEvents"):
            pages = self.client("cloudformation").get_paginator("describe_stack_events")
            for page in pages.paginate(StackName=stack_id):
                yield from page["StackEvents"]


def _others(found: Mapping[str, Any], template: TemplateResources) -> frozenset[str]:
    """Logical IDs of resources that do not belong to the cluster; none if the stack itself has the cluster's tag."""
    cluster = None if CLUSTER_TAG in tag_values(found.get("Tags")) else cluster_of({}, template)
    return frozenset(template) - resources_of(template, cluster) if cluster else frozenset()


def _described(
    found: Mapping[str, Any], template: TemplateResources, resources: tuple[MadeResource, ...]
) -> StackDescription:
    return StackDescription(
        name=found["StackName"],
        stack_id=found["StackId"],
        status=found["StackStatus"],
        cluster=cluster_of(tag_values(found.get("Tags")), template),
        protected=bool(found.get("EnableTerminationProtection")),
        resources=resources,
    )
