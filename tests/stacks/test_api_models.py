"""Validates templates against AWS's own models of the calls that CloudFormation makes."""

from typing import Any

import boto3
import pytest
from botocore.model import ListShape, OperationModel, Shape, StructureShape
from botocore.validate import ParamValidator

from tests.constructs.synth import Json, cluster_template
from tests.stacks.variants import VARIANTS

PLAUSIBLE = {
    "ImageId": "ami-0123456789abcdef0",
    "AutoScalingGroupName": "Stack-nodes",
    "Arn": "arn:aws:iam::123456789012:instance-profile/node",
    "Groups": "sg-0123456789abcdef0",
    "GroupName": "placement-group",
    "UserData": "IyEvYmluL2Jhc2gK",
    "LaunchTemplateId": "lt-0123456789abcdef0",
    "Version": "1",
    "VPCZoneIdentifier": "subnet-0123456789abcdef0",
    "Value": "value-of-a-tag",
}
"""Examples of the values that CloudFormation fills in, by the name of the property."""


def filled_in(value: Any, name: str = "") -> Any:
    match value:
        case {"Ref": "AWS::NoValue"}:
            return None
        case {"Fn::If": [_, when_awake, _]}:
            return filled_in(when_awake, name)
        case {"Fn::Select": [index, choices]}:
            return filled_in(choices[int(index)], name)
        case {"Ref": _} | {"Fn::GetAtt": _} | {"Fn::Base64": _} | {"Fn::Join": _}:
            return PLAUSIBLE[name]
        case dict():
            parts = {key: filled_in(part, key) for key, part in value.items()}
            return {key: part for key, part in parts.items() if part is not None}
        case list():
            return [filled_in(part, name) for part in value]
        case _:
            return value


def model_errors(operation: OperationModel, parameters: Json) -> list[str]:
    """The errors of a call by the model: unknown or missing parameters, wrong types, values outside an enumeration."""
    shape = operation.input_shape
    assert shape is not None
    report = ParamValidator().validate(parameters, shape)
    return ([report.generate_report()] if report.has_errors() else []) + _enum_errors(parameters, shape)


def _enum_errors(value: Any, shape: Shape) -> list[str]:
    # botocore leaves these checks to the service.
    if isinstance(shape, StructureShape):
        parts = ((part, shape.members[key]) for key, part in value.items() if key in shape.members)
        return [error for part, member in parts for error in _enum_errors(part, member)]
    if isinstance(shape, ListShape):
        return [error for part in value for error in _enum_errors(part, shape.member)]
    choices = getattr(shape, "enum", [])
    return [f"{value!r} is not one of {choices}"] if choices and value not in choices else []


@pytest.fixture(scope="module")
def create_launch_template() -> OperationModel:
    return boto3.client("ec2", region_name="us-west-2").meta.service_model.operation_model("CreateLaunchTemplate")


@pytest.mark.parametrize("name", VARIANTS)
def test_create_launch_template_accepts_the_template_of_a_cluster(
    create_launch_template: OperationModel, name: str
) -> None:
    (template,) = cluster_template(**VARIANTS[name]).resources("AWS::EC2::LaunchTemplate").values()
    request = {"LaunchTemplateName": "node", **filled_in(template["Properties"])}
    assert model_errors(create_launch_template, request) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"MetadataOptions": {"HttpTokens": "mandatory"}}, "'mandatory' is not one of"),
        ({"NetworkInterfaces": [{"NetworkCard": 0}]}, "NetworkCard"),
        ({"NetworkInterfaces": [{"DeviceIndex": "0"}]}, "DeviceIndex"),
        ({"InstanceType": "trn1.31xlarge"}, "'trn1.31xlarge' is not one of"),
    ],
)
def test_model_refuses_an_invalid_template(create_launch_template: OperationModel, change: Json, problem: str) -> None:
    (error,) = model_errors(create_launch_template, {"LaunchTemplateName": "node", "LaunchTemplateData": change})
    assert problem in error


@pytest.mark.parametrize("name", VARIANTS)
def test_create_auto_scaling_group_accepts_the_group(name: str) -> None:
    """The test converts sizes to numbers, and the list of subnets to text, as CloudFormation does."""
    client = boto3.client("autoscaling", region_name="us-west-2")
    (resource,) = cluster_template(**VARIANTS[name]).resources("AWS::AutoScaling::AutoScalingGroup").values()
    group = filled_in(resource["Properties"])
    for collected in group.pop("MetricsCollection"):
        enabled = {**collected, "AutoScalingGroupName": "fleet"}
        assert model_errors(client.meta.service_model.operation_model("EnableMetricsCollection"), enabled) == []
    sizes = {size: int(group[size]) for size in ("MinSize", "MaxSize", "DesiredCapacity") if size in group}
    subnets = ",".join(group["VPCZoneIdentifier"])
    parameters = {**group, **sizes, "VPCZoneIdentifier": subnets, "AutoScalingGroupName": "fleet"}
    assert model_errors(client.meta.service_model.operation_model("CreateAutoScalingGroup"), parameters) == []
