"""Reads the existing and deleted stacks of a cluster, and deletes stacks."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from trainium_core.stacks.aws_stacks import NO_STACK, SETTLED, AwsStackReader
from trainium_core.stacks.cluster_resources import TemplateResources, cluster_resources, tagged_cluster
from trainium_core.stacks.containers import must_be_empty
from trainium_core.stacks.description import DescribedResource, StackDescription, StackProgress
from trainium_runtime.aws_errors import write_errors
from trainium_runtime.naming import CLUSTER_TAG, PROJECT_TAG
from trainium_runtime.tags import tag_values

_KEEPS = ("Retain", "RetainExceptOnCreate")


class AwsStackControl(AwsStackReader):
    """Methods that read raise UnavailableError if a request fails or is denied."""

    def existing_stacks(self, names: Sequence[str]) -> Sequence[StackDescription]:
        """The existing stacks among these names."""
        by_name = {stack["StackName"]: stack for stack in self.describe_stacks()}
        return [self._description(by_name[name]) for name in names if name in by_name]

    def deleted_stacks(self, names: Sequence[str]) -> Sequence[StackDescription]:
        """The deleted stacks of these names that CloudFormation still lists."""
        ids = [stack_id for name, stack_id in self.deleted_stack_ids() if name in names]
        return [self._description(stack) for stack_id in ids if (stack := self.describe_stack(stack_id))]

    def stack_progress(self, stack_id: str) -> StackProgress:
        """The state of a stack's deletion; DELETE_COMPLETE if the stack does not exist."""
        found = self.describe_stack(stack_id)
        if found is None or found["StackStatus"] == "DELETE_COMPLETE":
            return StackProgress(status="DELETE_COMPLETE")
        status = found["StackStatus"]
        left = [entry for entry in self.stack_resources(stack_id) if entry["ResourceStatus"] not in SETTLED]
        failures = self._failures(stack_id) if status == "DELETE_FAILED" else ()
        return StackProgress(status=status, left=len(left), failures=tuple(failures))

    def delete_stack(self, stack_id: str) -> None:
        """Start to delete a stack, if it exists. Raises RequestRefusedError."""
        with write_errors("cloudformation:DeleteStack", absent=NO_STACK):
            self.client("cloudformation").delete_stack(StackName=stack_id)

    def _description(self, found: Mapping[str, Any]) -> StackDescription:
        template = self.template_resources(found["StackId"], found["StackStatus"])
        others = _others(found, template)
        if found["StackStatus"] == "DELETE_COMPLETE":
            resources = self._former_resources(found["StackId"], others)
        else:
            resources = self._existing_resources(found["StackId"], template, others)
        tags = tag_values(found.get("Tags"))
        return StackDescription(
            name=found["StackName"],
            stack_id=found["StackId"],
            status=found["StackStatus"],
            cluster=tagged_cluster(tags, template),
            project=tags.get(PROJECT_TAG),
            protected=bool(found.get("EnableTerminationProtection")),
            resources=tuple(resources),
        )

    def _existing_resources(
        self, stack_id: str, template: TemplateResources, others: Collection[str]
    ) -> Iterator[DescribedResource]:
        kept = {name for name, resource in template.items() if resource.get("DeletionPolicy") in _KEEPS}
        for entry in self.stack_resources(stack_id):
            yield DescribedResource(
                kind=entry["ResourceType"],
                resource_id=entry.get("PhysicalResourceId", ""),
                kept=entry["LogicalResourceId"] in kept,
                gone=entry["ResourceStatus"] == "DELETE_COMPLETE",
                other=entry["LogicalResourceId"] in others,
                must_be_empty=must_be_empty(template.get(entry["LogicalResourceId"], {})),
            )

    def _former_resources(self, stack_id: str, others: Collection[str]) -> Iterator[DescribedResource]:
        """The resources of a deleted stack, from the last event of each."""
        last: dict[tuple[str, str], Mapping[str, Any]] = {}
        for event in self.newest_events(stack_id):
            last.setdefault((event["ResourceType"], event.get("PhysicalResourceId", "")), event)
        for (kind, resource_id), event in last.items():
            if resource_id not in ("", stack_id):
                status = event["ResourceStatus"]
                kept, gone = status == "DELETE_SKIPPED", status == "DELETE_COMPLETE"
                other = event["LogicalResourceId"] in others
                yield DescribedResource(kind=kind, resource_id=resource_id, kept=kept, gone=gone, other=other)

    def _failures(self, stack_id: str) -> Iterator[str]:
        """Why the last deletion of the stack failed: a line for each resource."""
        for event in self.newest_events(stack_id):
            of_the_stack = event.get("PhysicalResourceId") == stack_id
            if of_the_stack and event["ResourceStatus"] == "DELETE_IN_PROGRESS":
                return
            if not of_the_stack and event["ResourceStatus"] == "DELETE_FAILED":
                what = f"{event['ResourceType']} {event.get('PhysicalResourceId') or event['LogicalResourceId']}"
                yield f"{what}: {event.get('ResourceStatusReason', 'no reason reported')}"


def _others(found: Mapping[str, Any], template: TemplateResources) -> frozenset[str]:
    """Logical IDs of resources that do not belong to the cluster.

    Empty if the stack itself has the tag trn:cluster, or if none of its resources has it.
    """
    cluster = None if CLUSTER_TAG in tag_values(found.get("Tags")) else tagged_cluster({}, template)
    return frozenset(template) - cluster_resources(template, cluster) if cluster else frozenset()
