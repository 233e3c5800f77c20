"""What CloudFormation asks of a request: capabilities, limits, parameters that exist, Rules that hold."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, parameter, template

ROLE = {
    "Type": "AWS::IAM::Role",
    "Properties": {
        "AssumeRolePolicyDocument": {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
            ],
        }
    },
}
NAMED_ROLE = {**ROLE, "Properties": {**ROLE["Properties"], "RoleName": "named"}}


@pytest.fixture
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def refusal(stacks: Stacks, wanted: dict[str, Any], **arguments: Any) -> tuple[str, str]:
    """Code and message of the answer to CreateStack."""
    with pytest.raises(ClientError) as error:
        stacks.create(wanted, **arguments)
    return error.value.response["Error"]["Code"], error.value.response["Error"]["Message"]


class TestCapabilities:
    @pytest.mark.parametrize(
        ("wanted", "given", "missing"),
        [
            (template({"R": ROLE}), [], "CAPABILITY_IAM"),
            (template({"R": NAMED_ROLE}), ["CAPABILITY_IAM"], "CAPABILITY_NAMED_IAM"),
            (template({"P": parameter()}, Transform="AWS::LanguageExtensions"), [], "CAPABILITY_AUTO_EXPAND"),
        ],
    )
    def test_what_is_not_acknowledged_is_refused(
        self, stacks: Stacks, wanted: dict[str, Any], given: list[str], missing: str
    ) -> None:
        words = f"Requires capabilities : [{missing}]"
        assert refusal(stacks, wanted, Capabilities=given) == ("InsufficientCapabilitiesException", words)

    def test_a_change_set_requests_those_of_iam_only(self, stacks: Stacks) -> None:
        with pytest.raises(ClientError, match=r"Requires capabilities : \[CAPABILITY_IAM\]"):
            stacks.change_set("capable", template({"R": ROLE}), ChangeSetType="CREATE")
        wanted = template({"P": parameter()}, Transform="AWS::LanguageExtensions")
        assert stacks.change_set("capable", wanted, ChangeSetType="CREATE")["Status"] == "CREATE_COMPLETE"

    def test_the_template_says_which_it_needs(self, stacks: Stacks) -> None:
        summary = stacks.summary(template({"R": ROLE}))
        assert summary["Capabilities"] == ["CAPABILITY_IAM"]
        assert summary["CapabilitiesReason"] == "The following resource(s) require capabilities: [AWS::IAM::Role]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"StackName": "1st"}, "regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*"),
        ({"StackName": "a" * 129}, "length less than or equal to 128"),
        ({"TemplateBody": " " * 51_201}, "length less than or equal to 51200"),
        ({"Tags": [{"Key": "aws:a", "Value": "b"}]}, "aws: prefixed tag key names are not allowed"),
        ({"Tags": [{"Key": f"k{at}", "Value": "v"} for at in range(51)]}, "length less than or equal to 50"),
        ({"Parameters": [{"ParameterKey": "P", "ParameterValue": "x" * 4097}]}, "is too long. Length is 4097"),
        ({"Parameters": [{"ParameterKey": "P", "UsePreviousValue": True}]}, "not in the previous template"),
    ],
)
def test_a_request_beyond_the_limits_is_refused(stacks: Stacks, arguments: dict[str, Any], words: str) -> None:
    body = '{"Parameters": {"P": {"Type": "String", "Default": ""}}, "Resources": {"T": {"Type": "AWS::SNS::Topic"}}}'
    with pytest.raises(ClientError) as error:
        stacks.api.create_stack(**{"StackName": "limits", "TemplateBody": body, **arguments})
    assert words in error.value.response["Error"]["Message"]


class TestParametersOfAwsTypes:
    def test_what_does_not_exist_fails_the_stack_before_its_resources(self, stacks: Stacks) -> None:
        declared = {"Vpc": {"Type": "AWS::EC2::VPC::Id", "Default": "vpc-0123456789abcdef0"}}
        name = stacks.create(template({"P": parameter()}, Parameters=declared))
        assert stacks.settled(name) == "ROLLBACK_COMPLETE"
        words = (
            "Parameter validation failed: parameter value vpc-0123456789abcdef0 for parameter name Vpc does not exist."
        )
        assert words in stacks.reasons(name)
        assert "P" not in dict(stacks.events(name))

    def test_what_exists_is_taken(self, stacks: Stacks) -> None:
        ec2 = stacks.aws.client("ec2")
        vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
        subnets = [one["SubnetId"] for one in ec2.describe_subnets()["Subnets"][:2]]
        group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
        declared = {
            "Vpc": {"Type": "AWS::EC2::VPC::Id", "Default": vpc},
            "Subnets": {"Type": "List<AWS::EC2::Subnet::Id>", "Default": ",".join(subnets)},
            "Group": {"Type": "AWS::EC2::SecurityGroup::Id", "Default": group},
            "Zone": {"Type": "AWS::EC2::AvailabilityZone::Name", "Default": "us-west-2a"},
        }
        wanted = template({"P": parameter({"Fn::Select": [1, {"Ref": "Subnets"}]})}, Parameters=declared)
        assert stacks.value_of(stacks.deploy(wanted), "P") == subnets[1]


class TestRules:
    def rules(self, assertion: dict[str, Any], condition: dict[str, Any] | None = None) -> dict[str, Any]:
        rule = {"Assertions": [{"Assert": assertion, "AssertDescription": "that will not do"}]}
        return template(
            {"P": parameter()},
            Parameters={
                "Env": {"Type": "String", "Default": "dev"},
                "Zones": {"Type": "List<String>", "Default": "a,b"},
            },
            Rules={"R": {**rule, **({"RuleCondition": condition} if condition else {})}},
        )

    @pytest.mark.parametrize(
        "assertion",
        [
            {"Fn::Contains": [["prod"], {"Ref": "Env"}]},
            {"Fn::EachMemberIn": [{"Ref": "Zones"}, ["a"]]},
            {"Fn::EachMemberEquals": [{"Ref": "Zones"}, "a"]},
            {"Fn::Not": [{"Fn::Equals": [{"Ref": "Env"}, "dev"]}]},
        ],
    )
    def test_an_assertion_that_does_not_hold_is_refused_with_its_description(
        self, stacks: Stacks, assertion: dict[str, Any]
    ) -> None:
        code, message = refusal(stacks, self.rules(assertion))
        assert code == "ValidationError"
        assert "that will not do" in message

    def test_a_rule_whose_condition_is_false_is_not_applied(self, stacks: Stacks) -> None:
        never = {"Fn::Equals": [{"Ref": "Env"}, "prod"]}
        assert stacks.deploy(self.rules({"Fn::Contains": [["prod"], {"Ref": "Env"}]}, never))


def test_language_extensions_are_expanded_with_the_given_parameters(stacks: Stacks) -> None:
    wanted = template(
        {
            "Fn::ForEach::Names": [
                "Name",
                {"Ref": "Names"},
                {"P${Name}": parameter({"Fn::Sub": "${Name}-${AWS::Region}"}, DeletionPolicy={"Ref": "Policy"})},
            ]
        },
        Transform="AWS::LanguageExtensions",
        Parameters={
            "Names": {"Type": "CommaDelimitedList", "Default": "x"},
            "Policy": {"Type": "String", "Default": "Delete"},
        },
    )
    name = stacks.deploy(wanted, Parameters=[{"ParameterKey": "Names", "ParameterValue": "a,b"}])
    assert [stacks.value_of(name, one) for one in ("Pa", "Pb")] == ["a-us-west-2", "b-us-west-2"]
