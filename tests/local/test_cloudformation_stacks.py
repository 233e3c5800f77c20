"""The lifecycle of a stack: events, outputs, updates, rollbacks, deletion."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, parameter, template


@pytest.fixture
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def bucket(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::S3::Bucket", "Properties": properties}


def failing(**more: Any) -> dict[str, Any]:
    """A subnet in a VPC that does not exist, which EC2 refuses."""
    properties = {"VpcId": "vpc-00000000000000000", "CidrBlock": "10.0.0.0/24"}
    return {"Type": "AWS::EC2::Subnet", "Properties": properties, **more}


def parameter_count(stacks: Stacks) -> int:
    pages = stacks.aws.client("ssm").get_paginator("describe_parameters").paginate()
    return sum(len(page["Parameters"]) for page in pages)


class TestCreation:
    def test_stack_creates_and_deletes_in_dependency_order(self, stacks: Stacks) -> None:
        before = parameter_count(stacks)
        resources = {"A": parameter({"Ref": "B"}), "B": parameter("v", DependsOn="C"), "C": parameter()}
        outputs = {"Value": {"Value": {"Fn::GetAtt": ["B", "Value"]}}, "Text": {"Value": "t"}}
        name = stacks.deploy(template(resources, Outputs=outputs))
        stack_id = stacks.describe(name)["StackId"]
        assert stacks.outputs(name) == {"Value": "v", "Text": "t"}
        assert stacks.delete(name) == "DELETE_COMPLETE"
        events = stacks.events(stack_id)
        assert [one for one, status in events if status == "CREATE_COMPLETE"] == ["C", "B", "A", name]
        assert [one for one, status in events if status == "DELETE_COMPLETE"] == ["A", "B", "C", name]
        times = [one["Timestamp"] for one in stacks.api.describe_stack_events(StackName=stack_id)["StackEvents"]]
        assert len(set(times)) == len(times)  # Clients sort by the timestamp.
        assert parameter_count(stacks) == before
        with pytest.raises(ClientError, match=f"Stack with id {name} does not exist"):
            stacks.describe(name)

    def test_failed_creation_rolls_back_and_leaves_deletable_stack(self, stacks: Stacks) -> None:
        before = parameter_count(stacks)
        name = stacks.create(template({"A": parameter(), "Z": failing(DependsOn="A")}))
        assert stacks.settled(name) == "ROLLBACK_COMPLETE"
        assert "vpc-00000000000000000" in stacks.failures(name)
        assert "The following resource(s) failed to create: [Z]." in stacks.reasons(name)
        assert parameter_count(stacks) == before
        with pytest.raises(ClientError, match="is in ROLLBACK_COMPLETE state and can not be updated"):
            stacks.update(name, template({"A": parameter()}))
        assert stacks.delete(name) == "DELETE_COMPLETE"

    def test_partly_created_resource_is_deleted(self, stacks: Stacks) -> None:
        roles = len(stacks.aws.client("iam").list_roles()["Roles"])
        trust = {"Version": "2012-10-17", "Statement": []}
        arns = ["arn:aws:iam::aws:policy/NoSuchPolicyOfAws"]
        role = {"AssumeRolePolicyDocument": trust, "ManagedPolicyArns": arns}
        name = stacks.create(template({"R": {"Type": "AWS::IAM::Role", "Properties": role}}))
        assert stacks.settled(name) == "ROLLBACK_COMPLETE"
        assert len(stacks.aws.client("iam").list_roles()["Roles"]) == roles

    @pytest.mark.parametrize(
        ("properties", "words"),
        [({"Typ": "String"}, "'Typ' was unexpected. Did you mean 'Type'?"), ({}, "'Value' is a required property")],
    )
    def test_wrong_properties_are_named(self, stacks: Stacks, properties: dict[str, Any], words: str) -> None:
        name = stacks.create(template({"A": {"Type": "AWS::SSM::Parameter", "Properties": properties}}))
        assert stacks.settled(name) == "ROLLBACK_COMPLETE"
        assert words in stacks.failures(name)

    def test_second_stack_of_same_name_is_refused(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter()}))
        with pytest.raises(ClientError, match="already exists"):
            stacks.api.create_stack(StackName=name, TemplateBody="{}")

    @pytest.mark.parametrize(
        "option",
        [{"DisableRollback": True}, {"OnFailure": "DELETE"}, {"TimeoutInMinutes": 5}, {"StackPolicyBody": "{}"}],
    )
    def test_unsupported_option_is_refused_by_name(self, stacks: Stacks, option: dict[str, Any]) -> None:
        (name,) = option
        with pytest.raises(ClientError, match=f"does not support {name}="):
            stacks.create(template({"A": parameter()}), **option)

    def test_stack_tags_are_set_on_resources(self, stacks: Stacks) -> None:
        tags = [{"Key": "trn:cluster", "Value": "c"}]
        name = stacks.deploy(
            template({"V": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}}), Tags=tags
        )
        vpcs = stacks.aws.client("ec2").describe_vpcs(VpcIds=[stacks.physical_id(name, "V")])["Vpcs"]
        assert vpcs[0]["Tags"] == tags


class TestUpdate:
    def test_update_adds_changes_and_removes(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"Stays": parameter("old"), "Goes": parameter()}))
        stays, goes = stacks.physical_id(name, "Stays"), stacks.physical_id(name, "Goes")
        assert stacks.update(name, template({"Stays": parameter("new"), "Comes": parameter()})) == "UPDATE_COMPLETE"
        assert stacks.value_of(name, "Stays") == "new"
        assert stacks.physical_id(name, "Stays") == stays
        assert stacks.value_of(name, "Comes") == "x"
        with pytest.raises(ClientError, match="ParameterNotFound"):
            stacks.aws.client("ssm").get_parameter(Name=goes)

    def test_create_only_property_replaces_the_resource(self, stacks: Stacks) -> None:
        def group(description: str) -> dict[str, Any]:
            properties = {"GroupDescription": description, "VpcId": {"Ref": "V"}}
            vpc = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}
            return template({"V": vpc, "G": {"Type": "AWS::EC2::SecurityGroup", "Properties": properties}})

        name = stacks.deploy(group("one"))
        old = stacks.physical_id(name, "G")
        stacks.update(name, group("two"))
        assert stacks.physical_id(name, "G") != old
        with pytest.raises(ClientError, match="NotFound"):
            stacks.aws.client("ec2").describe_security_groups(GroupIds=[old])

    def test_failed_update_restores_everything(self, stacks: Stacks) -> None:
        before = template({"A": parameter("old")}, Outputs={"O": {"Value": {"Fn::GetAtt": ["A", "Value"]}}})
        name = stacks.deploy(before)
        count = parameter_count(stacks)
        bad = template({"A": parameter("new"), "N": parameter(DependsOn="A"), "Z": failing(DependsOn="N")})
        assert stacks.update(name, bad) == "UPDATE_ROLLBACK_COMPLETE"
        assert stacks.value_of(name, "A") == "old"
        assert parameter_count(stacks) == count
        assert stacks.outputs(name) == {"O": "old"}
        assert list(stacks.api.get_template(StackName=name)["TemplateBody"]["Resources"]) == ["A"]

    @pytest.mark.parametrize(
        ("resource", "words"),
        [(parameter(), r"No updates are to be performed\."), (bucket(), "Update of resource type is not permitted")],
    )
    def test_update_without_change_or_with_changed_type_is_refused(
        self, stacks: Stacks, resource: dict[str, Any], words: str
    ) -> None:
        name = stacks.deploy(template({"A": parameter()}))
        with pytest.raises(ClientError, match=words):
            stacks.update(name, template({"A": resource}))


class TestDeletion:
    @pytest.mark.parametrize("policy", ["Retain", "RetainExceptOnCreate"])
    def test_retained_resource_outlives_the_stack(self, stacks: Stacks, policy: str) -> None:
        name = stacks.deploy(template({"A": parameter(DeletionPolicy=policy)}))
        kept, stack_id = stacks.physical_id(name, "A"), stacks.describe(name)["StackId"]
        stacks.delete(name)
        assert ("A", "DELETE_SKIPPED") in stacks.events(stack_id)
        assert stacks.aws.client("ssm").get_parameter(Name=kept)

    @pytest.mark.parametrize(("policy", "left"), [("Retain", 1), ("RetainExceptOnCreate", 0)])
    def test_rollback_of_creation_keeps_only_deletion_policy_retain(
        self, stacks: Stacks, policy: str, left: int
    ) -> None:
        before = parameter_count(stacks)
        name = stacks.create(template({"A": parameter(DeletionPolicy=policy), "Z": failing(DependsOn="A")}))
        assert stacks.settled(name) == "ROLLBACK_COMPLETE"
        assert parameter_count(stacks) - before == left

    def test_bucket_with_objects_stops_deletion(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"B": bucket(), "A": parameter()}))
        s3, bucket_name = stacks.aws.client("s3"), stacks.physical_id(name, "B")
        s3.put_object(Bucket=bucket_name, Key="k", Body=b"")
        assert stacks.delete(name) == "DELETE_FAILED"
        assert "The bucket you tried to delete is not empty" in stacks.failures(name)
        s3.delete_object(Bucket=bucket_name, Key="k")
        assert stacks.delete(name) == "DELETE_COMPLETE"

    def test_termination_protection_stops_deletion(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter()}), EnableTerminationProtection=True)
        with pytest.raises(ClientError, match="TerminationProtection is enabled"):
            stacks.delete(name)
        stacks.api.update_termination_protection(StackName=name, EnableTerminationProtection=False)
        assert stacks.delete(name) == "DELETE_COMPLETE"

    def test_deletion_of_unknown_stack_succeeds(self, stacks: Stacks) -> None:
        stacks.api.delete_stack(StackName="never-was")


class TestExports:
    def exporting(self, stacks: Stacks, name: str) -> str:
        outputs = {"O": {"Value": {"Fn::GetAtt": ["A", "Value"]}, "Export": {"Name": name}}}
        return stacks.deploy(template({"A": parameter("v")}, Outputs=outputs))

    def test_imported_export_can_be_neither_changed_nor_deleted(self, stacks: Stacks) -> None:
        exporter = self.exporting(stacks, "e1")
        name = stacks.deploy(template({"B": parameter({"Fn::ImportValue": "e1"})}))
        assert stacks.value_of(name, "B") == "v"
        with pytest.raises(ClientError, match="Export e1 cannot be deleted as it is in use"):
            stacks.delete(exporter)
        assert stacks.update(exporter, template({"A": parameter("w")})) == "UPDATE_ROLLBACK_COMPLETE"
        assert stacks.value_of(exporter, "A") == "v"
        assert "Export e1 cannot be updated as it is in use by" in stacks.reasons(exporter)

    def test_export_name_is_unique(self, stacks: Stacks) -> None:
        self.exporting(stacks, "e2")
        outputs = {"O": {"Value": "x", "Export": {"Name": "e2"}}}
        second = stacks.create(template({"A": parameter()}, Outputs=outputs))
        assert stacks.settled(second) == "ROLLBACK_COMPLETE"
