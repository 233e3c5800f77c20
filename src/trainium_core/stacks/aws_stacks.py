"""Reads stacks and their templates from CloudFormation."""

from collections.abc import Mapping
from typing import Any, cast

from trainium_core.stacks.cluster_resources import TemplateResources, clusters_in
from trainium_core.stacks.deployed_stack import DeployedStack, StackContents, StackNetwork
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import UnavailableError
from trainium_runtime.naming import CLUSTER_TAG
from trainium_runtime.tags import tag_values


class AwsStackTemplates(AwsService):
    def template_resources(self, stack_id: str, status: str) -> TemplateResources:
        """The resources of a stack, which may be deleted. Raises UnavailableError."""
        if status == "REVIEW_IN_PROGRESS":
            return {}
        with read_errors("cloudformation:GetTemplate", absent=("does not exist",)):
            body = self.client("cloudformation").get_template(StackName=stack_id)["TemplateBody"]
            if not isinstance(body, Mapping):
                raise UnavailableError(f"the template of {stack_id} is not JSON: this package did not make it")
            return cast(Mapping[str, Any], body).get("Resources", {})
        return {}


def cluster_of(tags: Mapping[str, str], resources: TemplateResources) -> str | None:
    """The cluster, by the tag of a stack or of its resources: the CDK tags stacks only if configured to."""
    if CLUSTER_TAG in tags:
        return tags[CLUSTER_TAG]
    return next(iter(clusters_in(resources)), None)


class AwsStacks(AwsStackTemplates):
    """Implements trainium_core.stacks.deployed_stack.Stacks."""

    def deployed_stack(self, name: str) -> DeployedStack | None:
        # CloudFormation has no specific error code for a missing stack.
        with read_errors("cloudformation:DescribeStacks", absent=("does not exist",)):
            (found,) = self.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
            return as_deployed_stack(found)
        return None

    def stack_contents(self, stack: DeployedStack) -> StackContents:
        resources = self.template_resources(stack.stack_id, stack.status)
        return StackContents(cluster=cluster_of(stack.tags, resources), network=_network(resources))


def as_deployed_stack(found: Mapping[str, Any]) -> DeployedStack:
    """A stack, from CloudFormation's description."""
    parameters = found.get("Parameters", [])
    return DeployedStack(
        stack_id=found["StackId"],
        status=found["StackStatus"],
        created=found["CreationTime"],
        tags=tag_values(found.get("Tags")),
        outputs={output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])},
        parameters={one["ParameterKey"]: one.get("ParameterValue", "") for one in parameters},
    )


def _network(resources: TemplateResources) -> StackNetwork | None:
    zone_id = _first_property(resources, "AWS::EC2::Subnet", "AvailabilityZoneId")
    cidr = _first_property(resources, "AWS::EC2::VPC", "CidrBlock")
    if zone_id is None or cidr is None:
        return None
    has_lustre = any(made["Type"] == "AWS::FSx::FileSystem" for made in resources.values())
    return StackNetwork(zone_id=zone_id, cidr=cidr, has_lustre=has_lustre)


def _first_property(resources: TemplateResources, resource_type: str, name: str) -> str | None:
    of_type = (made.get("Properties", {}) for made in resources.values() if made["Type"] == resource_type)
    return next((properties[name] for properties in of_type if isinstance(properties.get(name), str)), None)
