"""Reads stacks, their resources, events and templates from CloudFormation, and the tags of resources by ARN."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from trainium_core.stacks.cluster_resources import TemplateResources, tagged_cluster
from trainium_core.stacks.deployed_stack import DeployedStack, StackContents, StackNetwork
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import UnavailableError
from trainium_runtime.naming import CLUSTER_TAG, PROJECT_TAG
from trainium_runtime.tags import tag_values

# CloudFormation has no specific error code for a missing stack.
NO_STACK = ("does not exist",)

SETTLED = ("DELETE_COMPLETE", "DELETE_SKIPPED")
"""States of a resource that CloudFormation has deleted, or has skipped in a deletion."""


class AwsStackReader(AwsService):
    """Reads stacks by name or ID. Methods raise UnavailableError."""

    def describe_stack(self, name: str) -> Mapping[str, Any] | None:
        """The description of a stack; None if the stack does not exist. A deleted stack is found only by its ID."""
        with read_errors("cloudformation:DescribeStacks", absent=NO_STACK):
            (found,) = self.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
            return found
        return None

    def describe_stacks(self) -> Sequence[Mapping[str, Any]]:
        """The descriptions of all stacks that are not deleted."""
        with read_errors("cloudformation:DescribeStacks"):
            pages = self.client("cloudformation").get_paginator("describe_stacks").paginate()
            return [stack for page in pages for stack in page["Stacks"] if stack["StackStatus"] != "DELETE_COMPLETE"]

    def deleted_stack_ids(self) -> Sequence[tuple[str, str]]:
        """Name and ID of each deleted stack that CloudFormation still lists, the newest first."""
        with read_errors("cloudformation:ListStacks"):
            pages = self.client("cloudformation").get_paginator("list_stacks")
            listed = pages.paginate(StackStatusFilter=["DELETE_COMPLETE"])
            return [(stack["StackName"], stack["StackId"]) for page in listed for stack in page["StackSummaries"]]

    def stack_resources(self, stack: str) -> Sequence[Mapping[str, Any]]:
        """The resources of a stack; empty without the stack."""
        with read_errors("cloudformation:ListStackResources", absent=NO_STACK):
            pages = self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
            return [entry for page in pages for entry in page["StackResourceSummaries"]]
        return []

    def newest_events(self, stack: str) -> Iterator[Mapping[str, Any]]:
        """The events of a stack, the newest first; empty without the stack."""
        with read_errors("cloudformation:DescribeStackEvents", absent=NO_STACK):
            pages = self.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack)
            for page in pages:
                yield from page["StackEvents"]

    def template_resources(self, stack_id: str, status: str) -> TemplateResources:
        """The resources in the template of an existing or deleted stack; empty without the stack or a template."""
        if status == "REVIEW_IN_PROGRESS":
            return {}
        with read_errors("cloudformation:GetTemplate", absent=NO_STACK):
            body = self.client("cloudformation").get_template(StackName=stack_id)["TemplateBody"]
            if not isinstance(body, Mapping):
                raise UnavailableError(f"the template of {stack_id} is not JSON: this package did not make it")
            return cast(Mapping[str, Any], body).get("Resources", {})
        return {}

    def stack_containing(self, resource_id: str) -> str | None:
        """The name of the existing stack that contains a resource; None if no stack does."""
        with read_errors("cloudformation:DescribeStackResources", absent=NO_STACK):
            answer = self.client("cloudformation").describe_stack_resources(PhysicalResourceId=resource_id)
            entries = answer["StackResources"]
            # The answer has up to 100 resources of the stack, and not always the given one.
            given = [entry for entry in entries if entry.get("PhysicalResourceId") == resource_id]
            there = (entry["StackName"] for entry in given or entries if entry["ResourceStatus"] not in SETTLED)
            return next(there, None)
        return None

    def tag_index(self, cluster: str | None = None) -> Mapping[str, Mapping[str, str]]:
        """The tags of each resource with the tag trn:cluster, by ARN.

        Args:
            cluster: Value of the tag. Default: any value.
        """
        wanted = {"Key": CLUSTER_TAG} | ({"Values": [cluster]} if cluster else {})
        with read_errors("tag:GetResources"):
            pages = self.client("resourcegroupstaggingapi").get_paginator("get_resources")
            found = [entry for page in pages.paginate(TagFilters=[wanted]) for entry in page["ResourceTagMappingList"]]
            return {entry["ResourceARN"]: tag_values(entry["Tags"]) for entry in found}


class AwsStacks(AwsStackReader):
    """Reads stacks as values. Methods raise UnavailableError if a request fails or is denied."""

    def deployed_stack(self, name: str) -> DeployedStack | None:
        """The stack of this name; None if it does not exist."""
        found = self.describe_stack(name)
        return None if found is None else as_deployed_stack(found)

    def project_stacks(self, project_id: str) -> Mapping[str, DeployedStack]:
        """The stacks that a project deployed, by name. Stacks with only change sets are not included."""
        found = {stack["StackName"]: as_deployed_stack(stack) for stack in self.describe_stacks()}
        return {
            name: stack
            for name, stack in found.items()
            if stack.tags.get(PROJECT_TAG) == project_id and stack.status != "REVIEW_IN_PROGRESS"
        }

    def stack_contents(self, stack: DeployedStack) -> StackContents:
        """The content of a stack, from its template and tags."""
        resources = self.template_resources(stack.stack_id, stack.status)
        return StackContents(cluster=tagged_cluster(stack.tags, resources), network=_network(resources))


def as_deployed_stack(found: Mapping[str, Any]) -> DeployedStack:
    """A stack, from CloudFormation's description."""
    parameters = found.get("Parameters", [])
    return DeployedStack(
        stack_id=found["StackId"],
        status=found["StackStatus"],
        created=found["CreationTime"],
        tags=tag_values(found.get("Tags")),
        outputs={output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])},
        parameters={parameter["ParameterKey"]: parameter.get("ParameterValue", "") for parameter in parameters},
    )


def _network(resources: TemplateResources) -> StackNetwork | None:
    zone_id = _first_property(resources, "AWS::EC2::Subnet", "AvailabilityZoneId")
    cidr = _first_property(resources, "AWS::EC2::VPC", "CidrBlock")
    if zone_id is None or cidr is None:
        return None
    has_lustre = any(resource["Type"] == "AWS::FSx::FileSystem" for resource in resources.values())
    return StackNetwork(zone_id=zone_id, cidr=cidr, has_lustre=has_lustre)


def _first_property(resources: TemplateResources, resource_type: str, name: str) -> str | None:
    of_type = (resource.get("Properties", {}) for resource in resources.values() if resource["Type"] == resource_type)
    return next((properties[name] for properties in of_type if isinstance(properties.get(name), str)), None)
