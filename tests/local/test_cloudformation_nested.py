"""Nested stacks."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import CAPABILITIES, Stacks, Template, function, parameter, template

FAILING = {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": "vpc-00000000000000000", "CidrBlock": "10.0.0.0/24"}}


@pytest.fixture
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def nested(stacks: Stacks, wanted: Template, **properties: Any) -> dict[str, Any]:
    """A nested stack, as a resource of a template. Its template is an object in a bucket."""
    s3, bucket, key = stacks.aws.client("s3"), "nested-templates", f"{hash(json.dumps(wanted))}.json"
    if bucket not in {one["Name"] for one in s3.list_buckets()["Buckets"]}:
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": stacks.aws.region})
    s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(wanted))
    url = f"https://s3.{stacks.aws.region}.amazonaws.com/{bucket}/{key}"
    return {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url, **properties}}


def child(value: str) -> Template:
    """A template with the parameter `P` that it needs, whose output `Out` is the value and that of the parameter."""
    out = {"Out": {"Value": {"Fn::Sub": [value + "-${P}", {}]}}}
    return template({"A": parameter(value)}, Parameters={"P": {"Type": "String"}}, Outputs=out)


def statuses(stacks: Stacks, stack_id: str) -> list[str]:
    """The statuses of the stack itself, in order of time."""
    name = stack_id.split("/")[1]
    return [status for one, status in stacks.events(stack_id) if one == name]


def test_nested_stack_is_created_updated_and_deleted_with_its_parent(stacks: Stacks) -> None:
    middle = template({"Inner": nested(stacks, child("x"), Parameters={"P": "p"})})
    resources = {
        "Nested": nested(stacks, child("v"), Parameters={"P": "p"}),
        "Middle": nested(stacks, middle),
        "Uses": parameter({"Fn::GetAtt": ["Nested", "Outputs.Out"]}),
    }
    name = stacks.deploy(template(resources), Tags=[{"Key": "team", "Value": "ml"}])
    assert stacks.value_of(name, "Uses") == "v-p"
    described = stacks.describe(stacks.physical_id(name, "Nested"))
    parent, middle_id = stacks.describe(name)["StackId"], stacks.physical_id(name, "Middle")
    assert (described["ParentId"], described["RootId"]) == (parent, parent)
    assert described["Tags"] == [{"Key": "team", "Value": "ml"}]
    inner = stacks.describe(stacks.physical_id(middle_id, "Inner"))
    assert (inner["ParentId"], inner["RootId"]) == (middle_id, parent)
    started = stacks.api.describe_stack_events(StackName=name)["StackEvents"]
    assert described["StackId"] in [
        event["PhysicalResourceId"] for event in started if event["ResourceStatus"] == "CREATE_IN_PROGRESS"
    ]  # the CDK CLI shows the events of nested stacks by this ID

    resources["Nested"] = nested(stacks, child("w"), Parameters={"P": "q"})
    assert stacks.update(name, template(resources)) == "UPDATE_COMPLETE"
    assert stacks.value_of(name, "Uses") == "w-q"
    assert stacks.describe(described["StackId"])["StackStatus"] == "UPDATE_COMPLETE"
    assert stacks.describe(middle_id)["StackStatus"] == "CREATE_COMPLETE"

    assert stacks.delete(name) == "DELETE_COMPLETE"
    assert {stacks.describe(one)["StackStatus"] for one in (described["StackId"], middle_id, inner["StackId"])} == {
        "DELETE_COMPLETE"
    }


def test_failed_nested_creation_is_rolled_back_with_its_reason(stacks: Stacks) -> None:
    name = stacks.create(template({"Nested": nested(stacks, template({"A": parameter(), "Z": FAILING}))}))
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    failed = stacks.failures(name)
    assert "was not successfully created: The following resource(s) failed to create: [Z]." in failed
    assert "vpc-00000000000000000" in failed
    stack_id = failed.split("Embedded stack ")[1].split()[0]
    assert statuses(stacks, stack_id)[-1] == "DELETE_COMPLETE"


def test_successful_nested_update_is_rolled_back_with_its_parent(stacks: Stacks) -> None:
    before = template({"A": parameter("old"), "Kept": parameter()}, Outputs={"Out": {"Value": "old"}})
    after = template({"A": parameter("new")}, Outputs={"Out": {"Value": "new"}})
    name = stacks.deploy(template({"Nested": nested(stacks, before)}))
    stack_id = stacks.physical_id(name, "Nested")
    kept = stacks.physical_id(stack_id, "Kept")
    changed = {"Nested": nested(stacks, after), "Z": FAILING | {"DependsOn": "Nested"}}
    assert stacks.update(name, template(changed)) == "UPDATE_ROLLBACK_COMPLETE"
    assert stacks.value_of(stack_id, "A") == "old"
    assert stacks.physical_id(stack_id, "Kept") == kept
    assert stacks.outputs(stack_id) == {"Out": "old"}
    assert statuses(stacks, stack_id)[-3:] == [
        "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
        "UPDATE_ROLLBACK_IN_PROGRESS",
        "UPDATE_ROLLBACK_COMPLETE",
    ]
    assert stacks.update(name, template({"Nested": nested(stacks, after)})) == "UPDATE_COMPLETE"
    assert [
        one["LogicalResourceId"] for one in stacks.api.describe_stack_resources(StackName=stack_id)["StackResources"]
    ] == ["A"]


def test_failed_nested_update_rolls_its_parent_back(stacks: Stacks) -> None:
    name = stacks.deploy(template({"P": parameter("old"), "Nested": nested(stacks, template({"A": parameter("old")}))}))
    stack_id = stacks.physical_id(name, "Nested")
    broken = nested(stacks, template({"A": parameter("new"), "Z": FAILING | {"DependsOn": "A"}}))
    assert stacks.update(name, template({"P": parameter("new"), "Nested": broken})) == "UPDATE_ROLLBACK_COMPLETE"
    assert "was not successfully updated: The following resource(s) failed to create: [Z]." in stacks.failures(name)
    assert (stacks.value_of(name, "P"), stacks.value_of(stack_id, "A")) == ("old", "old")
    assert stacks.describe(stack_id)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"


def test_deletion_cancels_creation_of_nested_stack(stacks: Stacks) -> None:
    silent = function("def handler(event, context): pass")
    custom = {"Type": "Custom::Silent", "Properties": {"ServiceToken": {"Fn::GetAtt": ["Fn", "Arn"]}}}
    deletable = custom | {"DeletionPolicy": "Retain"}
    wanted = template({"Nested": nested(stacks, template({**silent, "Custom": deletable}))})
    name = stacks.api.create_stack(StackName="cancelled", TemplateBody=json.dumps(wanted), Capabilities=CAPABILITIES)
    assert stacks.delete("cancelled") == "DELETE_COMPLETE"
    (stack_id,) = [
        one["StackId"] for one in stacks.api.list_stacks()["StackSummaries"] if one.get("ParentId") == name["StackId"]
    ]
    assert stacks.describe(stack_id)["StackStatus"] == "DELETE_COMPLETE"


def test_nested_stack_needs_capability_of_its_parent(stacks: Stacks) -> None:
    wanted = template({"Nested": nested(stacks, template(function("")))})
    name = stacks.create(wanted, Capabilities=[])
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert "Requires capabilities : [CAPABILITY_IAM]" in stacks.failures(name)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"Parameters": {"X": "1"}}, "Parameters: [X] do not exist in the template"),
        ({"TemplateURL": "https://s3.us-west-2.amazonaws.com/no-bucket/x.json"}, "no-bucket/x.json"),
    ],
)
def test_invalid_nested_stack_fails_with_reason(stacks: Stacks, properties: dict[str, Any], words: str) -> None:
    name = stacks.create(template({"Nested": nested(stacks, template({"A": parameter()}), **properties)}))
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert words in stacks.failures(name)


def test_unsupported_property_of_nested_stack_is_refused(stacks: Stacks) -> None:
    with pytest.raises(ClientError, match=r"does not support .TimeoutInMinutes. of AWS::CloudFormation::Stack"):
        stacks.create(template({"Nested": nested(stacks, template({"A": parameter()}), TimeoutInMinutes=5)}))
