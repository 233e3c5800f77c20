"""Stacks of one feature each, deployed and read through boto3."""

import json
import textwrap
import time
import uuid
from typing import Any

from tests.local.conftest import EmbeddedAws

Template = dict[str, Any]

ENDS = ("_COMPLETE", "_FAILED")
CAPABILITIES = ["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]


def template(resources: dict[str, Any], **sections: Any) -> Template:
    return {"Resources": resources, **sections}


def parameter(value: Any = "x", **more: Any) -> dict[str, Any]:
    """An SSM parameter, as a resource of a template."""
    return {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": value}, **more}


def trust_of(service: str) -> dict[str, Any]:
    """The trust policy of a role that the service assumes."""
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return {"Version": "2012-10-17", "Statement": [statement]}


def function(code: str) -> dict[str, Any]:
    """A Python function and its role, as template resources `Fn` and `Role`."""
    role: dict[str, Any] = {
        "Type": "AWS::IAM::Role",
        "Properties": {"AssumeRolePolicyDocument": trust_of("lambda.amazonaws.com")},
    }
    properties = {
        "Runtime": "python3.13",
        "Handler": "index.handler",
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        "Timeout": 20,
        "Code": {"ZipFile": textwrap.dedent(code)},
    }
    return {"Role": role, "Fn": {"Type": "AWS::Lambda::Function", "Properties": properties}}


class Stacks:
    """The CloudFormation calls of the tests, with a unique name for each stack."""

    def __init__(self, aws: EmbeddedAws) -> None:
        self.aws = aws
        self.api = aws.client("cloudformation")
        self._ids: dict[str, str] = {}

    def create(self, wanted: Template, **arguments: Any) -> str:
        name = f"t-{uuid.uuid4().hex[:8]}"
        arguments = {"Capabilities": CAPABILITIES, **arguments}
        created = self.api.create_stack(StackName=name, TemplateBody=json.dumps(wanted), **arguments)
        self._ids[name] = created["StackId"]
        return name

    def deploy(self, wanted: Template, **arguments: Any) -> str:
        name = self.create(wanted, **arguments)
        assert self.settled(name) == "CREATE_COMPLETE", self.failures(name)
        return name

    def update(self, name: str, wanted: Template, **arguments: Any) -> str:
        arguments = {"Capabilities": CAPABILITIES, **arguments}
        self.api.update_stack(StackName=name, TemplateBody=json.dumps(wanted), **arguments)
        return self.settled(name)

    def delete(self, name: str) -> str:
        stack_id = self._ids.get(name) or self.describe(name)["StackId"]
        self.api.delete_stack(StackName=name)
        return self.settled(stack_id)

    def settled(self, name: str, within: float = 60) -> str:
        deadline = time.monotonic() + within
        while (status := self.describe(name)["StackStatus"]).endswith("_IN_PROGRESS"):
            assert time.monotonic() < deadline, f"{name} is still {status}"
            time.sleep(0.05)
        return status

    def describe(self, name: str) -> dict[str, Any]:
        stack = self.api.describe_stacks(StackName=name)["Stacks"][0]
        assert stack["StackStatus"] in self._known("StackStatus")
        return stack

    def _known(self, shape: str) -> list[str]:
        """The values of an enum in the API's model."""
        return self.api.meta.service_model.shape_for(shape).enum

    def outputs(self, name: str) -> dict[str, str]:
        return {output["OutputKey"]: output["OutputValue"] for output in self.describe(name).get("Outputs", [])}

    def events(self, name: str) -> list[tuple[str, str]]:
        """(logical ID, status) in order of time."""
        events = self.api.describe_stack_events(StackName=name)["StackEvents"]
        # In the API's model, ResourceStatus lacks some statuses that events of the stack itself have.
        known = {*self._known("ResourceStatus"), *self._known("StackStatus")}
        assert {event["ResourceStatus"] for event in events} <= known
        return [(event["LogicalResourceId"], event["ResourceStatus"]) for event in reversed(events)]

    def failures(self, name: str) -> str:
        events = self.api.describe_stack_events(StackName=name)["StackEvents"]
        failed = [event for event in reversed(events) if event["ResourceStatus"].endswith("FAILED")]
        return "\n".join(f"{one['LogicalResourceId']}: {one.get('ResourceStatusReason')}" for one in failed)

    def reasons(self, name: str) -> str:
        events = self.api.describe_stack_events(StackName=name)["StackEvents"]
        return "\n".join(event.get("ResourceStatusReason", "") for event in reversed(events))

    def physical_id(self, name: str, logical_id: str) -> str:
        (found,) = self.api.describe_stack_resources(StackName=name, LogicalResourceId=logical_id)["StackResources"]
        return found["PhysicalResourceId"]

    def value_of(self, name: str, logical_id: str) -> str:
        """The value of an SSM parameter of the stack."""
        parameter_name = self.physical_id(name, logical_id)
        return self.aws.client("ssm").get_parameter(Name=parameter_name)["Parameter"]["Value"]

    def change_set(self, name: str, wanted: Template, **arguments: Any) -> dict[str, Any]:
        arguments = {"ChangeSetName": "look", "ChangeSetType": "UPDATE", **arguments}
        created = self.api.create_change_set(StackName=name, TemplateBody=json.dumps(wanted), **arguments)
        return self.api.describe_change_set(ChangeSetName=created["Id"])
