"""Asks CloudFormation for a stack, and for what its template says."""

from collections.abc import Mapping
from typing import Any

from trainium_core.stacks.aws_template import AwsStackTemplates, cluster_of
from trainium_core.stacks.cluster_resources import TemplateResources
from trainium_core.stacks.deployed_stack import DeployedStack, StackContents, StackNetwork
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.tags import tag_values


class AwsStacks(AwsStackTemplates):
    """Implements trainium_core.stacks.deployed_stack.Stacks."""

    def deployed_stack(self, name: str) -> DeployedStack | None:
        # CloudFormation has no code of its own for a stack that does not exist.
        with read_errors("cloudformation:DescribeStacks", absent=("does not exist",)):
            (found,) = self.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
            return as_deployed_stack(found)
        return None

    def stack_contents(self, stack: DeployedStack) -> StackContents:
        resources = self.template_resources(stack.stack_id, stack.status)
        return StackContents(cluster=cluster_of(stack.tags, resources), network=_network(resources))


def as_deployed_stack(found: Mapping[str, Any]) -> DeployedStack:
    """A stack as CloudFormation describes it."""
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
