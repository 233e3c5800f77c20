"""Any template is either accepted or refused with a ValidationError; no other error occurs."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.local.stacks import parameter
from trainium_local.cloudformation.deployment import prepare
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.stack import Region
from trainium_local.resources import registry

SOUND: dict[str, Any] = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Description": "a template with all supported sections except Metadata",
    "Parameters": {"Env": {"Type": "String", "AllowedValues": ["dev", "prod"], "Default": "dev", "NoEcho": True}},
    "Rules": {"R": {"Assertions": [{"Assert": {"Fn::Contains": [["dev", "prod"], {"Ref": "Env"}]}}]}},
    "Mappings": {"M": {"a": {"b": "c", "d": ["e"]}}},
    "Conditions": {
        "Dev": {"Fn::Equals": [{"Ref": "Env"}, "dev"]},
        "Both": {"Fn::And": [{"Condition": "Dev"}, {"Fn::Not": [{"Condition": "Dev"}]}]},
    },
    "Resources": {
        "A": parameter({"Fn::Join": ["-", [{"Ref": "AWS::Region"}, {"Fn::FindInMap": ["M", "a", "b"]}]]}),
        "B": parameter(
            {"Fn::Sub": ["${x}${A}", {"x": {"Fn::Select": [0, {"Fn::Split": [",", "a,b"]}]}}]},
            DependsOn=["A"],
            Condition="Dev",
            DeletionPolicy="Retain",
        ),
        "C": parameter({"Fn::If": ["Dev", {"Fn::GetAtt": ["A", "Value"]}, {"Fn::Base64": "x"}]}),
    },
    "Outputs": {"O": {"Value": {"Fn::GetAtt": "A.Value"}, "Export": {"Name": "o"}}},
}
ANYTHING = st.sampled_from(
    [None, [], {}, "", "x", 0, -1, 1.5, True, [1], {"a": "b"}, {"Ref": "A"}, {"Ref": []}, {"Fn::GetAtt": "x"}, [[None]]]
)


class Anything(registry.ResourceType):
    """Stands in for AWS; no call reaches it."""

    def create(self, request: registry.ResourceRequest) -> registry.Provisioned:
        raise NotImplementedError


@pytest.fixture(autouse=True, scope="module")
def _types() -> None:
    registry.register("AWS::SSM::Parameter", Anything())


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in parts:
        yield (*path, step)
        yield from paths(part, (*path, step))


PATHS = list(paths(SOUND))


def prepare_deployment(body: str) -> None:
    """Run all steps of a deployment before the first resource is created."""
    prepare(Region("123456789012", "us-west-2"), body, {}, {}, [])


def changed(path: tuple[Any, ...], change: str, value: Any) -> dict[str, Any]:
    document = json.loads(json.dumps(SOUND))
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    if change == "delete":
        del place[path[-1]]
    elif change == "wrap":
        place[path[-1]] = {"Fn::Sub": place[path[-1]]}
    else:
        place[path[-1]] = value
    return document


def test_valid_template_is_accepted() -> None:
    prepare_deployment(json.dumps(SOUND))


@given(st.sampled_from(PATHS), st.sampled_from(["delete", "wrap", "replace", "replace", "replace"]), ANYTHING)
def test_mutated_template_is_accepted_or_refused(path: tuple[Any, ...], change: str, value: Any) -> None:
    with contextlib.suppress(ValidationError):
        prepare_deployment(json.dumps(changed(path, change, value)))


@given(st.text(alphabet='{}[]",:&*!<-? \n\tab1.0\x00é', max_size=60))
def test_arbitrary_text_is_refused(body: str) -> None:
    with pytest.raises(ValidationError):
        prepare_deployment(body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "At least one Resources member must be defined"),
        ('{"Resources": {},}', "JSON not well-formed."),
        ("a:\n\t- b", "YAML not well-formed."),
        ("A: &a {}\nB: *a", "YAML aliases are not allowed in CloudFormation templates"),
        ("A: !Ref B", "the embedded AWS does not support the tag !Ref: write the full form"),
        ("[" * 100_000, "YAML not well-formed."),
    ],
)
def test_text_that_is_not_a_template_is_refused(body: str, words: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        prepare_deployment(body)
    assert words in str(refusal.value.message)
