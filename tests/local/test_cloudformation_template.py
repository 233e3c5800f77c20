"""Valid and invalid templates and requests; invalid ones are refused before any resource changes."""

import json
import uuid
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, parameter, template, trust_of


@pytest.fixture(scope="module")
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


ROLE: dict[str, Any] = {
    "Type": "AWS::IAM::Role",
    "Properties": {"AssumeRolePolicyDocument": trust_of("ec2.amazonaws.com")},
}
DEV = {"Env": {"Type": "String", "Default": "dev"}}


def rule(assertion: dict[str, Any]) -> dict[str, Any]:
    return {"R": {"Assertions": [{"Assert": assertion, "AssertDescription": "that will not do"}]}}


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (template({"X": {"Type": "AWS::EC2::Vpcc"}}), "Unrecognized resource types: [AWS::EC2::Vpcc]"),
        (template({"X": {"Type": "Nonsense"}}), "Unrecognized resource types: [Nonsense]"),
        (template({"X": parameter({"Ref": "Nowhere"})}), "Unresolved resource dependencies [Nowhere]"),
        (template({"X": parameter({"Fn::Sub": "${Nowhere}"})}), "Unresolved resource dependencies [Nowhere]"),
        (template({"X": parameter(DependsOn="Nowhere")}), "Unresolved resource dependencies [Nowhere]"),
        (
            template({"A": parameter({"Ref": "B"}), "B": parameter({"Ref": "A"})}),
            "Circular dependency between resources: [A, B]",
        ),
        (template({"A": parameter({"Fn::GetAtt": ["B", "Valu"]}), "B": parameter()}), "support attribute type Valu"),
        (template({"X": parameter(Propertys={})}), "Invalid template resource property of X [Propertys]"),
        (template({"X": parameter(Condition="Unsaid")}), "Unresolved condition dependency Unsaid"),
        (template({"X": parameter(CreationPolicy={})}), "Invalid template resource property of X [CreationPolicy]"),
        (template({"X": parameter()}, Transform="AWS::SAM"), "Invalid template property or properties [Transform]"),
        (template({"X": parameter("{{resolve:ssm:/a:1}}")}), "does not support dynamic references"),
        (
            template({"X": {"Type": "AWS::S3::Bucket", "Properties": {"CorsConfiguration": {}}}}),
            "does not support [CorsConfiguration] of AWS::S3::Bucket (X)",
        ),
        (
            template({"X": parameter(UpdatePolicy={"AutoScalingRollingUpdate": {}})}),
            "Invalid update policy of X [AutoScalingRollingUpdate]",
        ),
        (template({"X": parameter({"Fn::Length": [1]})}), "Encountered unsupported function: Fn::Length"),
        (template({"X": parameter({"Fn::FindInMap": ["M", "a", "b"]})}), "Unable to get mapping for M::a::b"),
        (
            template({"X": parameter()}, Parameters=DEV, Rules=rule({"Fn::Contains": [["prod"], {"Ref": "Env"}]})),
            "that will not do",
        ),
    ],
)
def test_invalid_template_is_refused_immediately(stacks: Stacks, wanted: dict[str, Any], words: str) -> None:
    before = len(stacks.api.list_stacks()["StackSummaries"])
    with pytest.raises(ClientError) as refusal:
        stacks.create(wanted)
    assert refusal.value.response["Error"]["Code"] == "ValidationError"
    assert words in refusal.value.response["Error"]["Message"]
    assert len(stacks.api.list_stacks()["StackSummaries"]) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"StackName": "1st"}, "regular expression pattern: [a-zA-Z][-a-zA-Z0-9]{0,127}"),
        ({"TemplateBody": " " * 51_201}, "length less than or equal to 51200"),
        ({"Parameters": [{"ParameterKey": "P", "UsePreviousValue": True}]}, "not in the previous template"),
        ({"Parameters": [{"ParameterKey": "Q", "ParameterValue": "2"}]}, "[Q] do not exist in the template"),
    ],
)
def test_invalid_request_is_refused(stacks: Stacks, arguments: dict[str, Any], words: str) -> None:
    body = json.dumps(template({"T": parameter()}, Parameters={"P": {"Type": "String", "Default": ""}}))
    with pytest.raises(ClientError) as error:
        stacks.api.create_stack(**{"StackName": "limits", "TemplateBody": body, **arguments})
    assert words in error.value.response["Error"]["Message"]


@pytest.mark.parametrize(
    ("resource", "acknowledged", "missing"),
    [
        (ROLE, [], "IAM"),
        ({**ROLE, "Properties": {**ROLE["Properties"], "RoleName": "named"}}, ["CAPABILITY_IAM"], "NAMED_IAM"),
        ({"Type": "AWS::IAM::User"}, [], "IAM"),
        ({"Type": "AWS::IAM::User", "Properties": {"UserName": "named"}}, ["CAPABILITY_IAM"], "NAMED_IAM"),
        ({"Type": "AWS::IAM::AccessKey", "Properties": {"UserName": "existing"}}, [], "IAM"),
    ],
)
def test_unacknowledged_capability_is_refused(
    stacks: Stacks, resource: dict[str, Any], acknowledged: list[str], missing: str
) -> None:
    with pytest.raises(ClientError, match=rf"Requires capabilities : \[CAPABILITY_{missing}\]") as error:
        stacks.create(template({"R": resource}), Capabilities=acknowledged)
    assert error.value.response["Error"]["Code"] == "InsufficientCapabilitiesException"


FUNCTIONS: list[tuple[Any, str]] = [
    ({"Fn::Join": ["-", ["a", "b"]]}, "a-b"),
    ({"Fn::Select": ["1", {"Fn::Split": [",", "a,b,c"]}]}, "b"),
    ({"Fn::Sub": "${AWS::Region} ${!Literal} ${AWS::AccountId}"}, "us-west-2 ${Literal} 123456789012"),
    ({"Fn::Sub": ["${x}!", {"x": {"Fn::Base64": "hi"}}]}, "aGk=!"),
    ({"Fn::FindInMap": ["M", "a", "b"]}, "mapped"),
    ({"Fn::If": ["Yes", "then", "otherwise"]}, "then"),
    ({"Fn::If": ["No", "then", "otherwise"]}, "otherwise"),
    ({"Fn::Select": [0, {"Fn::GetAZs": ""}]}, "us-west-2a"),
]


def test_functions_and_conditions_are_applied(stacks: Stacks) -> None:
    wanted = template(
        {
            **{f"P{number}": parameter(value) for number, (value, _) in enumerate(FUNCTIONS)},
            "Never": parameter(Condition="No"),
        },
        Conditions={
            "Yes": {"Fn::Equals": [{"Ref": "AWS::Region"}, "us-west-2"]},
            "No": {"Fn::And": [{"Condition": "Yes"}, {"Fn::Not": [{"Condition": "Yes"}]}]},
        },
        Mappings={"M": {"a": {"b": "mapped"}}},
    )
    wanted["Resources"]["P0"]["Properties"]["Description"] = {"Ref": "AWS::NoValue"}
    name = stacks.deploy(wanted)
    found = [stacks.value_of(name, f"P{number}") for number in range(len(FUNCTIONS))]
    assert found == [expected for _, expected in FUNCTIONS]
    listed = stacks.api.list_stack_resources(StackName=name)["StackResourceSummaries"]
    assert "Never" not in {one["LogicalResourceId"] for one in listed}
    assert stacks.delete(name) == "DELETE_COMPLETE"


def test_yaml_is_read(stacks: Stacks) -> None:
    body = """
    AWSTemplateFormatVersion: 2010-09-09
    Resources:
      A: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: {"Fn::Sub": "${AWS::Region}"}}}
    Outputs:
      Value: {Value: {"Fn::GetAtt": A.Value}}
    """
    stacks.api.create_stack(StackName="yaml", TemplateBody=body)
    assert stacks.settled("yaml") == "CREATE_COMPLETE"
    assert stacks.outputs("yaml") == {"Value": "us-west-2"}
    stacks.delete("yaml")


class TestParameters:
    @pytest.mark.parametrize(
        ("declared", "value", "words"),
        [
            ({"Type": "String"}, None, r"\[P\] must have values"),
            ({"Type": "String", "AllowedValues": ["dev", "prod"]}, "pro", "one of AllowedValues: dev, prod"),
            ({"Type": "Number"}, "four", "must be a number."),
            ({"Type": "String", "MaxLength": 2}, "abc", "must contain at most 2 characters"),
            ({"Type": "String", "AllowedPattern": "[a-z]+"}, "A", "must match pattern"),
            ({"Type": "AWS::SSM::Parameter::Value<String>"}, "/t/none", r"Unable to fetch parameters \[/t/none\]"),
        ],
    )
    def test_parameter_value_outside_its_constraints_is_refused(
        self, stacks: Stacks, declared: Any, value: str | None, words: str
    ) -> None:
        arguments = [{"ParameterKey": "P", "ParameterValue": value}] if value else []
        with pytest.raises(ClientError, match=words):
            stacks.create(template({"X": parameter()}, Parameters={"P": declared}), Parameters=arguments)

    def test_parameter_values_are_shown_as_given_and_resolved_again(self, stacks: Stacks) -> None:
        ssm, stored = stacks.aws.client("ssm"), f"/t/{uuid.uuid4().hex[:8]}"
        ssm.put_parameter(Name=stored, Type="String", Value="one")
        declared = {
            "P": {"Type": "AWS::SSM::Parameter::Value<String>"},
            "S": {"Type": "String", "NoEcho": True, "Default": "hush"},
        }
        wanted = template({"X": parameter({"Ref": "P"})}, Parameters=declared)
        name = stacks.deploy(wanted, Parameters=[{"ParameterKey": "P", "ParameterValue": stored}])
        assert stacks.value_of(name, "X") == "one"
        assert stacks.describe(name)["Parameters"] == [
            {"ParameterKey": "P", "ParameterValue": stored, "ResolvedValue": "one"},
            {"ParameterKey": "S", "ParameterValue": "****"},
        ]
        ssm.put_parameter(Name=stored, Type="String", Value="two", Overwrite=True)
        wanted["Description"] = "again"
        stacks.update(name, wanted, Parameters=[{"ParameterKey": "P", "UsePreviousValue": True}])
        assert stacks.value_of(name, "X") == "two"


def test_template_is_read_from_s3_loopback_url(stacks: Stacks) -> None:
    s3 = stacks.aws.client("s3")
    s3.create_bucket(Bucket="templates", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket="templates", Key="a b.json", Body=json.dumps(template({"A": parameter()})))
    stacks.api.create_stack(StackName="by-url", TemplateURL=f"{stacks.aws.endpoint}/templates/a%20b.json")
    assert stacks.settled("by-url") == "CREATE_COMPLETE"
