"""The stacks of a pilot, as CloudFormation describes them."""

from datetime import UTC, datetime

from botocore.stub import Stubber

from trainium_core.stacks.aws_pilot_stacks import AwsPilotStacks
from trainium_core.stacks.pilot_stacks import DeployedStack

CREATED = datetime(2026, 11, 21, tzinfo=UTC)


def test_a_stack_is_known_with_what_its_ssm_parameters_said_when_it_was_deployed(
    credentials_of_nobody: None,  # noqa: ARG001
) -> None:
    account = AwsPilotStacks("us-west-2")
    parameters = [
        {"ParameterKey": "Image", "ParameterValue": "/my/image", "ResolvedValue": "ami-1"},
        {"ParameterKey": "Asleep", "ParameterValue": "false"},
    ]
    there = {"StackName": "A", "CreationTime": CREATED, "StackStatus": "CREATE_COMPLETE", "Parameters": parameters}
    stub = Stubber(account.client("cloudformation"))
    stub.activate()
    stub.add_response("describe_stacks", {"Stacks": [there]}, {"StackName": "A"})
    stub.add_client_error("describe_stacks", "ValidationError", "Stack with id B does not exist")
    assert account.deployed_stacks(["A", "B"]) == {"A": DeployedStack(created=CREATED, resolved={"/my/image": "ami-1"})}
