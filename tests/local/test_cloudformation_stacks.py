"""The life of a stack: events, outputs, updates, rollbacks, deletion."""

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
    """A subnet in a VPC that does not exist: EC2 refuses it."""
    properties = {"VpcId": "vpc-00000000000000000", "CidrBlock": "10.0.0.0/24"}
    return {"Type": "AWS::EC2::Subnet", "Properties": properties, **more}


def parameters(stacks: Stacks) -> int:
    pages = stacks.aws.client("ssm").get_paginator("describe_parameters").paginate()
    return sum(len(page["Parameters"]) for page in pages)


class TestCreation:
    def test_each_resource_comes_after_what_it_needs(self, stacks: Stacks) -> None:
        resources = {"A": parameter({"Ref": "B"}), "B": parameter(DependsOn="C"), "C": parameter()}
        name = stacks.deploy(template(resources))
        completed = [one for one, status in stacks.events(name) if status == "CREATE_COMPLETE"]
        assert completed == ["C", "B", "A", name]

    def test_outputs_are_given(self, stacks: Stacks) -> None:
        outputs = {"Value": {"Value": {"Fn::GetAtt": ["A", "Value"]}}, "Text": {"Value": "t"}}
        name = stacks.deploy(template({"A": parameter("v")}, Outputs=outputs))
        assert stacks.outputs(name) == {"Value": "v", "Text": "t"}

    def test_no_two_events_share_a_millisecond(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter(), "B": parameter()}))
        events = stacks.api.describe_stack_events(StackName=name)["StackEvents"]
        assert len({event["Timestamp"] for event in events}) == len(events)

    def test_a_failure_rolls_back_and_leaves_nothing(self, stacks: Stacks) -> None:
        before = parameters(stacks)
        name = stacks.create(template({"A": parameter(), "Z": failing(DependsOn="A")}))
        assert stacks.settled(name) == "ROLLBACK_COMPLETE"
        assert parameters(stacks) == before

    def test_a_failure_says_why(self, stacks: Stacks) -> None:
        name = stacks.create(template({"Z": failing()}))
        assert "vpc-00000000000000000" in stacks.failures(name)

    def test_a_failure_half_way_through_one_resource_leaves_nothing_of_it(self, stacks: Stacks) -> None:
        roles = len(stacks.aws.client("iam").list_roles()["Roles"])
        trust = {"Version": "2012-10-17", "Statement": []}
        arns = ["arn:aws:iam::aws:policy/NoSuchPolicyOfAws"]
        role = {"AssumeRolePolicyDocument": trust, "ManagedPolicyArns": arns}
        name = stacks.create(template({"R": {"Type": "AWS::IAM::Role", "Properties": role}}))
        assert stacks.settled(name) == "ROLLBACK_COMPLETE"
        assert len(stacks.aws.client("iam").list_roles()["Roles"]) == roles

    def test_without_rollback_what_was_created_stays_and_the_next_update_goes_on(self, stacks: Stacks) -> None:
        name = stacks.create(template({"A": parameter(), "Z": failing(DependsOn="A")}), DisableRollback=True)
        assert stacks.settled(name) == "CREATE_FAILED"
        kept = stacks.physical_id(name, "A")
        assert stacks.update(name, template({"A": parameter()}), DisableRollback=True) == "UPDATE_COMPLETE"
        assert stacks.physical_id(name, "A") == kept

    def test_a_misspelt_property_fails_with_its_name_and_the_right_one(self, stacks: Stacks) -> None:
        name = stacks.create(template({"B": bucket(BucketNam="x")}))
        assert "extraneous key [BucketNam] is not permitted (did you mean BucketName?)" in stacks.failures(name)

    def test_a_missing_property_fails_with_its_name(self, stacks: Stacks) -> None:
        name = stacks.create(template({"A": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String"}}}))
        assert "required key [Value] not found" in stacks.failures(name)

    def test_a_second_stack_of_the_name_is_refused(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter()}))
        with pytest.raises(ClientError, match="already exists"):
            stacks.api.create_stack(StackName=name, TemplateBody="{}")

    def test_tags_of_the_stack_go_onto_its_resources(self, stacks: Stacks) -> None:
        tags = [{"Key": "trn:cluster", "Value": "c"}]
        name = stacks.deploy(
            template({"V": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}}), Tags=tags
        )
        vpcs = stacks.aws.client("ec2").describe_vpcs(VpcIds=[stacks.physical_id(name, "V")])["Vpcs"]
        assert vpcs[0]["Tags"] == tags


class TestUpdate:
    def test_it_adds_changes_and_removes(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"Stays": parameter("old"), "Goes": parameter()}))
        stays, goes = stacks.physical_id(name, "Stays"), stacks.physical_id(name, "Goes")
        assert stacks.update(name, template({"Stays": parameter("new"), "Comes": parameter()})) == "UPDATE_COMPLETE"
        assert stacks.value_of(name, "Stays") == "new"
        assert stacks.physical_id(name, "Stays") == stays
        assert stacks.value_of(name, "Comes") == "x"
        with pytest.raises(ClientError, match="ParameterNotFound"):
            stacks.aws.client("ssm").get_parameter(Name=goes)

    def test_a_property_that_only_creation_sets_takes_a_new_resource(self, stacks: Stacks) -> None:
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

    def test_a_failure_takes_everything_back(self, stacks: Stacks) -> None:
        before = template({"A": parameter("old")}, Outputs={"O": {"Value": {"Fn::GetAtt": ["A", "Value"]}}})
        name = stacks.deploy(before)
        count = parameters(stacks)
        bad = template({"A": parameter("new"), "N": parameter(DependsOn="A"), "Z": failing(DependsOn="N")})
        assert stacks.update(name, bad) == "UPDATE_ROLLBACK_COMPLETE"
        assert stacks.value_of(name, "A") == "old"
        assert parameters(stacks) == count
        assert stacks.outputs(name) == {"O": "old"}

    def test_after_a_rollback_the_template_is_the_old_one(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter()}))
        stacks.update(name, template({"A": parameter(), "Z": failing()}))
        assert "Z" not in stacks.api.get_template(StackName=name)["TemplateBody"]["Resources"]

    def test_no_change_is_refused(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter()}))
        with pytest.raises(ClientError, match=r"No updates are to be performed\."):
            stacks.update(name, template({"A": parameter()}))

    def test_another_type_under_the_same_logical_id_is_refused(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter()}))
        with pytest.raises(ClientError, match="Update of resource type is not permitted"):
            stacks.update(name, template({"A": bucket()}))

    def test_a_stack_that_was_rolled_back_can_only_be_deleted(self, stacks: Stacks) -> None:
        name = stacks.create(template({"Z": failing()}))
        with pytest.raises(ClientError, match="is in ROLLBACK_COMPLETE state and can not be updated"):
            stacks.update(name, template({"A": parameter()}))
        assert stacks.delete(name) == "DELETE_COMPLETE"


class TestDeletion:
    def test_it_leaves_nothing(self, stacks: Stacks) -> None:
        before = parameters(stacks)
        name = stacks.deploy(template({"A": parameter(), "B": parameter({"Ref": "A"})}))
        assert stacks.delete(name) == "DELETE_COMPLETE"
        assert parameters(stacks) == before
        with pytest.raises(ClientError, match=f"Stack with id {name} does not exist"):
            stacks.describe(name)

    def test_what_needs_another_goes_first(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter(), "B": parameter({"Ref": "A"})}))
        stack_id = stacks.describe(name)["StackId"]
        stacks.delete(name)
        assert [one for one, status in stacks.events(stack_id) if status == "DELETE_COMPLETE"] == ["B", "A", name]

    @pytest.mark.parametrize("policy", ["Retain", "RetainExceptOnCreate"])
    def test_what_is_retained_stays(self, stacks: Stacks, policy: str) -> None:
        name = stacks.deploy(template({"A": parameter(DeletionPolicy=policy)}))
        kept, stack_id = stacks.physical_id(name, "A"), stacks.describe(name)["StackId"]
        stacks.delete(name)
        assert ("A", "DELETE_SKIPPED") in stacks.events(stack_id)
        assert stacks.aws.client("ssm").get_parameter(Name=kept)

    @pytest.mark.parametrize(("policy", "left"), [("Retain", 1), ("RetainExceptOnCreate", 0)])
    def test_a_rolled_back_creation_keeps_only_what_is_retained_always(
        self, stacks: Stacks, policy: str, left: int
    ) -> None:
        before = parameters(stacks)
        stacks.create(template({"A": parameter(DeletionPolicy=policy), "Z": failing(DependsOn="A")}))
        assert parameters(stacks) - before == left

    def test_a_bucket_that_holds_something_stops_it(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"B": bucket(), "A": parameter()}))
        s3, bucket_name = stacks.aws.client("s3"), stacks.physical_id(name, "B")
        s3.put_object(Bucket=bucket_name, Key="k", Body=b"")
        assert stacks.delete(name) == "DELETE_FAILED"
        assert "The bucket you tried to delete is not empty" in stacks.failures(name)
        s3.delete_object(Bucket=bucket_name, Key="k")
        assert stacks.delete(name) == "DELETE_COMPLETE"

    def test_termination_protection_stops_it(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter()}), EnableTerminationProtection=True)
        with pytest.raises(ClientError, match="TerminationProtection is enabled"):
            stacks.delete(name)

    def test_deleting_what_is_not_there_succeeds(self, stacks: Stacks) -> None:
        stacks.api.delete_stack(StackName="never-was")


class TestExports:
    def exporting(self, stacks: Stacks, name: str, value: str = "v") -> str:
        outputs = {"O": {"Value": {"Fn::GetAtt": ["A", "Value"]}, "Export": {"Name": name}}}
        return stacks.deploy(template({"A": parameter(value)}, Outputs=outputs))

    def test_another_stack_imports_the_value(self, stacks: Stacks) -> None:
        self.exporting(stacks, "e1")
        name = stacks.deploy(template({"B": parameter({"Fn::ImportValue": "e1"})}))
        assert stacks.value_of(name, "B") == "v"
        assert stacks.api.list_imports(ExportName="e1")["Imports"] == [name]

    def test_what_is_imported_cannot_be_deleted(self, stacks: Stacks) -> None:
        exporter = self.exporting(stacks, "e2")
        stacks.deploy(template({"B": parameter({"Fn::ImportValue": "e2"})}))
        with pytest.raises(ClientError, match="Export e2 cannot be deleted as it is in use"):
            stacks.delete(exporter)

    def test_what_is_imported_cannot_be_changed(self, stacks: Stacks) -> None:
        exporter = self.exporting(stacks, "e3")
        stacks.deploy(template({"B": parameter({"Fn::ImportValue": "e3"})}))
        assert stacks.update(exporter, template({"A": parameter("w")})) == "UPDATE_ROLLBACK_COMPLETE"
        assert stacks.value_of(exporter, "A") == "v"
        assert "Export e3 cannot be updated as it is in use by" in stacks.reasons(exporter)

    def test_an_output_can_be_taken_without_an_export(self, stacks: Stacks) -> None:
        giver = stacks.deploy(template({"A": parameter()}, Outputs={"O": {"Value": "given"}}))
        name = stacks.deploy(
            template({"B": parameter({"Fn::GetStackOutput": {"StackName": giver, "OutputName": "O"}})})
        )
        assert stacks.value_of(name, "B") == "given"

    def test_a_name_is_exported_once(self, stacks: Stacks) -> None:
        self.exporting(stacks, "e4")
        outputs = {"O": {"Value": "x", "Export": {"Name": "e4"}}}
        second = stacks.create(template({"A": parameter()}, Outputs=outputs))
        assert stacks.settled(second) == "ROLLBACK_COMPLETE"
