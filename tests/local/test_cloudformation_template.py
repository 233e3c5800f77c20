"""What a template may say, and what is refused before anything is touched."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, parameter, template


@pytest.fixture
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def values(stacks: Stacks, value: Any, **sections: Any) -> str:
    name = stacks.deploy(template({"P": parameter(value)}, **sections))
    return stacks.value_of(name, "P")


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ({"X": {"Type": "AWS::EC2::Vpcc"}}, "Unrecognized resource types: [AWS::EC2::Vpcc]"),
        ({"X": {"Type": "Nonsense"}}, "Unrecognized resource types: [Nonsense]"),
        ({"X": parameter({"Ref": "Nowhere"})}, "Unresolved resource dependencies [Nowhere]"),
        ({"X": parameter({"Fn::Sub": "${Nowhere}"})}, "Unresolved resource dependencies [Nowhere]"),
        ({"X": parameter(DependsOn="Nowhere")}, "Unresolved resource dependencies [Nowhere]"),
        ({"A": parameter({"Ref": "B"}), "B": parameter({"Ref": "A"})}, "Circular dependency between resources: [A, B]"),
        ({"A": parameter(), "B": parameter({"Fn::GetAtt": ["A", "Valu"]})}, "does not support attribute type Valu"),
        (
            {"X": parameter(Propertys={})},
            "Invalid template resource property 'Propertys' of X (did you mean Properties?)",
        ),
        ({"X": parameter(Condition="Unsaid")}, "Unresolved condition dependency Unsaid in the Resources block"),
    ],
)
def test_a_template_that_cannot_be_right_is_refused_at_once(stacks: Stacks, resources: Any, words: str) -> None:
    with pytest.raises(ClientError) as refusal:
        stacks.create(template(resources))
    assert refusal.value.response["Error"]["Code"] == "ValidationError"
    assert words in refusal.value.response["Error"]["Message"]


def test_a_refused_template_leaves_no_stack(stacks: Stacks) -> None:
    before = len(stacks.api.list_stacks()["StackSummaries"])
    with pytest.raises(ClientError):
        stacks.create(template({"X": {"Type": "Nonsense"}}))
    assert len(stacks.api.list_stacks()["StackSummaries"]) == before


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Fn::Join": ["-", ["a", "b"]]}, "a-b"),
        ({"Fn::Select": ["1", {"Fn::Split": [",", "a,b,c"]}]}, "b"),
        ({"Fn::Sub": "${AWS::Region} ${!Literal} ${AWS::AccountId}"}, "us-west-2 ${Literal} 123456789012"),
        ({"Fn::Sub": ["${x}!", {"x": {"Fn::Base64": "hi"}}]}, "aGk=!"),
        ({"Fn::Join": [",", {"Fn::Cidr": ["10.0.0.0/16", 2, 8]}]}, "10.0.0.0/24,10.0.1.0/24"),
        ({"Fn::FindInMap": ["M", "a", "b"]}, "mapped"),
        ({"Fn::If": ["Yes", "then", "otherwise"]}, "then"),
        ({"Fn::If": ["No", "then", "otherwise"]}, "otherwise"),
        ({"Fn::Select": [0, {"Fn::GetAZs": ""}]}, "us-west-2a"),
    ],
)
def test_functions_are_applied(stacks: Stacks, value: Any, expected: str) -> None:
    conditions = {
        "Yes": {"Fn::Equals": [{"Ref": "AWS::Region"}, "us-west-2"]},
        "No": {"Fn::And": [{"Condition": "Yes"}, {"Fn::Not": [{"Condition": "Yes"}]}]},
    }
    assert values(stacks, value, Conditions=conditions, Mappings={"M": {"a": {"b": "mapped"}}}) == expected


def test_a_condition_decides_whether_a_resource_exists(stacks: Stacks) -> None:
    never = {"Never": {"Fn::Equals": ["a", "b"]}}
    name = stacks.deploy(template({"A": parameter(), "B": parameter(Condition="Never")}, Conditions=never))
    listed = stacks.api.list_stack_resources(StackName=name)["StackResourceSummaries"]
    assert [one["LogicalResourceId"] for one in listed] == ["A"]


def test_no_value_takes_a_property_away(stacks: Stacks) -> None:
    described = parameter()
    described["Properties"]["Description"] = {"Ref": "AWS::NoValue"}
    assert stacks.deploy(template({"A": described}))


def test_yaml_with_short_forms_is_read(stacks: Stacks) -> None:
    body = """
    AWSTemplateFormatVersion: 2010-09-09
    Resources:
      A: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: !Sub "${AWS::Region}"}}
    Outputs:
      Value: {Value: !GetAtt A.Value}
    """
    stacks.api.create_stack(StackName="yaml", TemplateBody=body)
    assert stacks.settled("yaml") == "CREATE_COMPLETE"
    assert stacks.outputs("yaml") == {"Value": "us-west-2"}
    stacks.delete("yaml")


def test_a_transform_is_refused(stacks: Stacks) -> None:
    with pytest.raises(ClientError, match="does not expand the transforms"):
        stacks.create(template({"A": parameter()}, Transform="AWS::Serverless-2016-10-31"))


class TestParameters:
    def test_a_value_from_the_parameter_store_is_fetched_and_shown(self, stacks: Stacks) -> None:
        stacks.aws.client("ssm").put_parameter(Name="/t/image", Type="String", Value="ami-1")
        declared = {"Image": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/t/image"}}
        name = stacks.deploy(template({"P": parameter({"Ref": "Image"})}, Parameters=declared))
        assert stacks.value_of(name, "P") == "ami-1"
        assert stacks.describe(name)["Parameters"] == [
            {"ParameterKey": "Image", "ParameterValue": "/t/image", "ResolvedValue": "ami-1"}
        ]

    def test_a_missing_name_in_the_parameter_store_is_refused_with_awss_words(self, stacks: Stacks) -> None:
        declared = {"Image": {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", "Default": "/t/none"}}
        with pytest.raises(ClientError, match=r"Unable to fetch parameters \[/t/none\] from parameter store"):
            stacks.create(template({"P": parameter()}, Parameters=declared))

    @pytest.mark.parametrize(
        ("declared", "given", "words"),
        [
            ({"Type": "String"}, None, r"\[P\] must have values"),
            ({"Type": "String", "AllowedValues": ["dev", "prod"]}, "pro", "one of AllowedValues: dev, prod"),
            ({"Type": "Number"}, "four", "must be a number."),
            ({"Type": "String", "MaxLength": 2}, "abc", "must contain at most 2 characters"),
            ({"Type": "String", "AllowedPattern": "[a-z]+"}, "A", "must match pattern"),
        ],
    )
    def test_a_value_that_does_not_fit_is_refused(
        self, stacks: Stacks, declared: Any, given: str | None, words: str
    ) -> None:
        arguments = [{"ParameterKey": "P", "ParameterValue": given}] if given else []
        with pytest.raises(ClientError, match=words):
            stacks.create(template({"X": parameter()}, Parameters={"P": declared}), Parameters=arguments)

    def test_an_undeclared_one_is_refused(self, stacks: Stacks) -> None:
        given = [{"ParameterKey": "Nodes", "ParameterValue": "2"}]
        with pytest.raises(ClientError, match=r"\[Nodes\] do not exist in the template"):
            stacks.create(template({"X": parameter()}), Parameters=given)

    def test_a_secret_one_is_masked(self, stacks: Stacks) -> None:
        secret = {"Key": {"Type": "String", "NoEcho": True, "Default": "hush"}}
        name = stacks.deploy(template({"X": parameter()}, Parameters=secret))
        assert stacks.describe(name)["Parameters"][0]["ParameterValue"] == "****"

    def test_the_previous_value_is_the_name_given_not_what_it_held(self, stacks: Stacks) -> None:
        ssm = stacks.aws.client("ssm")
        ssm.put_parameter(Name="/t/moving", Type="String", Value="one")
        declared = {"P": {"Type": "AWS::SSM::Parameter::Value<String>"}}
        wanted = template({"X": parameter({"Ref": "P"})}, Parameters=declared)
        name = stacks.deploy(wanted, Parameters=[{"ParameterKey": "P", "ParameterValue": "/t/moving"}])
        ssm.put_parameter(Name="/t/moving", Type="String", Value="two", Overwrite=True)
        wanted["Description"] = "again"
        stacks.update(name, wanted, Parameters=[{"ParameterKey": "P", "UsePreviousValue": True}])
        assert stacks.value_of(name, "X") == "two"


def test_a_template_is_fetched_from_s3_by_its_loopback_url(stacks: Stacks) -> None:
    s3 = stacks.aws.client("s3")
    s3.create_bucket(Bucket="templates", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket="templates", Key="a b.json", Body=json.dumps(template({"A": parameter()})))
    stacks.api.create_stack(StackName="by-url", TemplateURL=f"{stacks.aws.endpoint}/templates/a%20b.json")
    assert stacks.settled("by-url") == "CREATE_COMPLETE"
