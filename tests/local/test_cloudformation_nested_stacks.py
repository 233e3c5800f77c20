"""Stacks as resources of stacks."""

import json
from typing import Any

import pytest

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


def test_it_goes_with_its_parent(stacks: Stacks) -> None:
    name = stacks.deploy(outer(stacks, "x"))
    inner = stacks.physical_id(name, "N")
    stacks.delete(name)
    assert stacks.describe(inner)["StackStatus"] == "DELETE_COMPLETE"
