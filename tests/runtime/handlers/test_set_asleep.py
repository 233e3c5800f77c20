"""The function that puts its stack to sleep, against moto's CloudFormation."""

import json
from typing import Any

import pytest

from tests.runtime.handlers.fleet import client
from trainium_runtime.handlers import set_asleep

TEMPLATE = {
    "Parameters": {"Asleep": {"Type": "String", "Default": "false"}, "Image": {"Type": "String", "Default": "ami-1"}},
    "Resources": {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Ref": "Asleep"}}}},
}


@pytest.fixture
def cloudformation(monkeypatch: pytest.MonkeyPatch) -> Any:
    cloudformation = client("cloudformation")
    parameters = [{"ParameterKey": "Image", "ParameterValue": "ami-2"}]
    stack = cloudformation.create_stack(StackName="s", TemplateBody=json.dumps(TEMPLATE), Parameters=parameters)
    monkeypatch.setenv("STACK_ID", stack["StackId"])
    monkeypatch.setenv("PARAMETER", "Asleep")
    return cloudformation


def test_only_the_parameter_changes(cloudformation: Any) -> None:
    set_asleep.handle({"asleep": True}, None)
    (stack,) = cloudformation.describe_stacks(StackName="s")["Stacks"]
    assert stack["StackStatus"] == "UPDATE_COMPLETE"
    assert {entry["ParameterKey"]: entry["ParameterValue"] for entry in stack["Parameters"]} == {
        "Asleep": "true",
        "Image": "ami-2",
    }
    assert json.loads(json.dumps(cloudformation.get_template(StackName="s")["TemplateBody"])) == TEMPLATE


def test_repeated_call_changes_nothing(cloudformation: Any) -> None:
    set_asleep.handle({"asleep": False}, None)
    assert cloudformation.describe_stacks(StackName="s")["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"


@pytest.mark.usefixtures("cloudformation")
@pytest.mark.parametrize("event", [{}, {"asleep": "x; rm"}, {"asleep": None}])
def test_other_events_are_refused(event: dict[str, Any]) -> None:
    with pytest.raises(KeyError):
        set_asleep.handle(event, None)
