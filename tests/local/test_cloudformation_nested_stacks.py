"""Stacks as resources of stacks."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, parameter, template


@pytest.fixture(scope="module")
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    s3 = embedded_aws.client("s3")
    s3.create_bucket(Bucket="nested", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    inner = template(
        {"A": parameter({"Ref": "Text"})},
        Parameters={"Text": {"Type": "String"}},
        Outputs={"Value": {"Value": {"Fn::GetAtt": ["A", "Value"]}}},
    )
    s3.put_object(Bucket="nested", Key="inner.json", Body=json.dumps(inner))
    return Stacks(embedded_aws)


def outer(stacks: Stacks, text: str) -> dict[str, Any]:
    url = f"{stacks.aws.endpoint}/nested/inner.json"
    nested = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url, "Parameters": {"Text": text}}}
    return template({"N": nested}, Outputs={"O": {"Value": {"Fn::GetAtt": ["N", "Outputs.Value"]}}})


def test_its_outputs_are_attributes(stacks: Stacks) -> None:
    assert stacks.outputs(stacks.deploy(outer(stacks, "deep"))) == {"O": "deep"}


def test_it_is_updated_with_its_parent(stacks: Stacks) -> None:
    name = stacks.deploy(outer(stacks, "one"))
    assert stacks.update(name, outer(stacks, "two")) == "UPDATE_COMPLETE"
    assert stacks.outputs(name) == {"O": "two"}


def test_it_is_rolled_back_with_its_parent(stacks: Stacks) -> None:
    name = stacks.deploy(outer(stacks, "one"))
    changed = outer(stacks, "two")
    changed["Resources"]["Z"] = {**parameter(), "Type": "AWS::SSM::Document", "DependsOn": "N"}
    assert stacks.update(name, changed) == "UPDATE_ROLLBACK_COMPLETE"
    inner = stacks.describe(stacks.physical_id(name, "N"))
    assert inner["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert inner["Outputs"][0]["OutputValue"] == "one"


def test_its_failure_says_what_failed_in_it(stacks: Stacks) -> None:
    wanted = outer(stacks, "x")
    bad = template({"A": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "None", "Value": "x"}}})
    stacks.aws.client("s3").put_object(Bucket="nested", Key="bad.json", Body=json.dumps(bad))
    wanted["Resources"]["N"]["Properties"] = {"TemplateURL": f"{stacks.aws.endpoint}/nested/bad.json"}
    name = stacks.create(wanted)
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert "was not successfully created: The following resource(s) failed to create: [A]." in stacks.failures(name)


def test_its_protection_is_that_of_its_root(stacks: Stacks) -> None:
    name = stacks.deploy(outer(stacks, "x"), EnableTerminationProtection=True)
    inner = stacks.describe(stacks.physical_id(name, "N"))
    assert (inner["EnableTerminationProtection"], inner["RootId"]) == (True, stacks.describe(name)["StackId"])
    with pytest.raises(ClientError, match="its root stack"):
        stacks.api.update_termination_protection(StackName=inner["StackId"], EnableTerminationProtection=False)


def test_it_goes_with_its_parent(stacks: Stacks) -> None:
    name = stacks.deploy(outer(stacks, "x"))
    inner = stacks.physical_id(name, "N")
    stacks.delete(name)
    assert stacks.describe(inner)["StackStatus"] == "DELETE_COMPLETE"
