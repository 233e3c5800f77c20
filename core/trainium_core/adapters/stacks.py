"""Asks CloudFormation."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainium_core.adapters.stack_template import AwsStackTemplates, cluster_of
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
