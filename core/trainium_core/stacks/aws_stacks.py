"""Asks CloudFormation."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainium_core.stacks.aws_template import AwsStackTemplates, TemplateResources, cluster_of
from trainium_core.stacks.deployed_stack import StackNetwork
from trainium_runtime.aws_errors import read_errors


class AwsStacks(AwsStackTemplates):
    def stack_status(self, name: str) -> str | None:
        described = self._described(name)
        return None if described is None else described["StackStatus"]

    def stack_cluster(self, name: str) -> str | None:
        """The cluster whose stack it is; None when it is not there, or nothing in it says so."""
        described = self._described(name)
        if described is None:
            return None
        return cluster_of(described.get("Tags", []), self.template_resources(described))

    def stack_network(self, name: str) -> StackNetwork | None:
        """None when there is no such stack, or it has no network of its own."""
        described = self._described(name)
        resources: TemplateResources = {} if described is None else self.template_resources(described)
        zone_id = _first_property(resources, "AWS::EC2::Subnet", "AvailabilityZoneId")
        cidr = _first_property(resources, "AWS::EC2::VPC", "CidrBlock")
        if zone_id is None or cidr is None:
            return None
        lustre = [made for made in resources.values() if made["Type"] == "AWS::FSx::FileSystem"]
        deleted = any(made.get("UpdateReplacePolicy") != "Retain" for made in lustre)
        return StackNetwork(zone_id=zone_id, cidr=cidr, lustre_is_deleted=deleted)

    def stack_created(self, name: str) -> datetime | None:
        """None when there is no such stack."""
        described = self._described(name)
        return None if described is None else described["CreationTime"]

    def stack_outputs(self, name: str) -> Mapping[str, str] | None:
        """None when there is no such stack."""
        described = self._described(name)
        if described is None:
            return None
        return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])}

    def _described(self, name: str) -> Mapping[str, Any] | None:
        # CloudFormation has no code of its own for a stack that does not exist.
        with read_errors("cloudformation:DescribeStacks", absent=("does not exist",)):
            (found,) = self.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
            return found
        return None


def _first_property(resources: TemplateResources, resource_type: str, name: str) -> str | None:
    of_type = (made.get("Properties", {}) for made in resources.values() if made["Type"] == resource_type)
    return next((properties[name] for properties in of_type if isinstance(properties.get(name), str)), None)
