"""What is read back: drift of resources, and resources that a stack takes over."""

import json
import uuid
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, parameter, template


@pytest.fixture(scope="module")
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def log_group(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::Logs::LogGroup", "DeletionPolicy": "Retain", "Properties": properties}


class TestDrift:
    def drift(self, stacks: Stacks, name: str) -> tuple[str, dict[str, str]]:
        """The stack's status, and its resources'."""
        detection = stacks.api.detect_stack_drift(StackName=name)["StackDriftDetectionId"]
        found = stacks.api.describe_stack_drift_detection_status(StackDriftDetectionId=detection)
        assert found["DetectionStatus"] == "DETECTION_COMPLETE"
        drifts = stacks.api.describe_stack_resource_drifts(StackName=name)["StackResourceDrifts"]
        return found["StackDriftStatus"], {one["LogicalResourceId"]: one["StackResourceDriftStatus"] for one in drifts}

    def test_what_is_as_the_template_says_is_in_sync(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter(), "L": log_group(RetentionInDays="7")}))
        assert self.drift(stacks, name) == ("IN_SYNC", {"A": "IN_SYNC", "L": "IN_SYNC"})
        assert stacks.describe(name)["DriftInformation"]["StackDriftStatus"] == "IN_SYNC"

    def test_what_was_changed_or_went_has_drifted(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter("old"), "L": log_group()}))
        ssm, logs = stacks.aws.client("ssm"), stacks.aws.client("logs")
        ssm.put_parameter(Name=stacks.physical_id(name, "A"), Value="new", Overwrite=True)
        logs.delete_log_group(logGroupName=stacks.physical_id(name, "L"))
        assert self.drift(stacks, name) == ("DRIFTED", {"A": "MODIFIED", "L": "DELETED"})
        one = stacks.api.detect_stack_resource_drift(StackName=name, LogicalResourceId="A")["StackResourceDrift"]
        assert one["PropertyDifferences"] == [
            {
                "PropertyPath": "/Value",
                "ExpectedValue": '"old"',
                "ActualValue": '"new"',
                "DifferenceType": "NOT_EQUAL",
            }
        ]

    def test_a_setting_that_was_taken_away_is_a_difference(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"L": log_group(RetentionInDays=7)}))
        stacks.aws.client("logs").delete_retention_policy(logGroupName=stacks.physical_id(name, "L"))
        found = stacks.api.detect_stack_resource_drift(StackName=name, LogicalResourceId="L")["StackResourceDrift"]
        assert [one["DifferenceType"] for one in found["PropertyDifferences"]] == ["REMOVE"]

    def test_what_is_not_given_back_is_not_in_sync(self, stacks: Stacks) -> None:
        bucket = {
            "Type": "AWS::S3::Bucket",
            "Properties": {"AccelerateConfiguration": {"AccelerationStatus": "Enabled"}},
        }
        name = stacks.deploy(template({"B": bucket}))
        assert self.drift(stacks, name) == ("UNKNOWN", {"B": "NOT_CHECKED"})


class TestImport:
    @pytest.fixture
    def group(self, stacks: Stacks) -> str:
        """A log group of no stack."""
        name = f"/imported/{uuid.uuid4().hex}"
        stacks.aws.client("logs").create_log_group(logGroupName=name)
        return name

    def change_set(self, stacks: Stacks, name: str, wanted: dict[str, Any], *imports: dict[str, Any]) -> dict[str, Any]:
        return stacks.change_set(name, wanted, ChangeSetType="IMPORT", ResourcesToImport=list(imports))

    def of_group(self, name: str) -> dict[str, Any]:
        identifier = {"LogGroupName": name}
        return {"ResourceType": "AWS::Logs::LogGroup", "LogicalResourceId": "L", "ResourceIdentifier": identifier}

    def test_a_resource_that_exists_becomes_one_of_the_stack(self, stacks: Stacks, group: str) -> None:
        name = stacks.deploy(template({"A": parameter()}))
        wanted = template({"A": parameter(), "L": log_group(LogGroupName=group)})
        change_set = self.change_set(stacks, name, wanted, self.of_group(group))
        assert [change["ResourceChange"]["Action"] for change in change_set["Changes"]] == ["Import"]
        stacks.api.execute_change_set(ChangeSetName=change_set["ChangeSetId"])
        assert stacks.settled(name) == "IMPORT_COMPLETE"
        assert stacks.physical_id(name, "L") == group
        assert ("L", "IMPORT_COMPLETE") in stacks.events(name)
        wanted["Resources"]["B"] = parameter({"Fn::GetAtt": ["L", "Arn"]})
        assert stacks.update(name, wanted) == "UPDATE_COMPLETE"
        assert stacks.value_of(name, "B").endswith(f"{group}:*")

    def test_a_new_stack_may_begin_with_an_import(self, stacks: Stacks, group: str) -> None:
        name = f"imported-{uuid.uuid4().hex[:8]}"
        wanted = template({"L": log_group(LogGroupName=group)})
        change_set = self.change_set(stacks, name, wanted, self.of_group(group))
        stacks.api.execute_change_set(ChangeSetName=change_set["ChangeSetId"])
        assert stacks.settled(name) == "IMPORT_COMPLETE"

    def test_what_does_not_exist_is_not_imported_and_nothing_changes(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter()}))
        wanted = template({"A": parameter(), "L": log_group(LogGroupName="/not/there")})
        change_set = self.change_set(stacks, name, wanted, self.of_group("/not/there"))
        stacks.api.execute_change_set(ChangeSetName=change_set["ChangeSetId"])
        assert stacks.settled(name) == "IMPORT_ROLLBACK_COMPLETE"
        assert "with identifier '/not/there' was not found" in stacks.failures(name)

    def test_a_failed_import_deletes_nothing(self, stacks: Stacks, group: str) -> None:
        name = stacks.deploy(template({"A": parameter()}))
        missing = {**self.of_group("/not/there"), "LogicalResourceId": "M"}
        groups = {"L": log_group(LogGroupName=group), "M": log_group(LogGroupName="/not/there") | {"DependsOn": "L"}}
        wanted = template({"A": parameter(), **groups})
        change_set = self.change_set(stacks, name, wanted, self.of_group(group), missing)
        stacks.api.execute_change_set(ChangeSetName=change_set["ChangeSetId"])
        assert stacks.settled(name) == "IMPORT_ROLLBACK_COMPLETE"
        assert stacks.aws.client("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"]

    @pytest.mark.parametrize(
        ("added", "refusal"),
        [
            ({"B": parameter()}, r"Resources \[B\] is missing from ResourceToImport list"),
            ({"A": parameter("other")}, r"You have modified resources \[A\] in your template that are not"),
            ({"L": {"Type": "AWS::Logs::LogGroup"}}, r"\[L\] must have DeletionPolicy attribute specified"),
        ],
    )
    def test_an_import_does_nothing_else(self, stacks: Stacks, group: str, added: dict[str, Any], refusal: str) -> None:
        name = stacks.deploy(template({"A": parameter()}))
        wanted = template({"A": parameter(), "L": log_group(LogGroupName=group), **added})
        with pytest.raises(ClientError, match=refusal):
            self.change_set(stacks, name, wanted, self.of_group(group))

    def test_the_summary_says_what_identifies_a_resource(self, stacks: Stacks) -> None:
        summary = stacks.api.get_template_summary(TemplateBody=json.dumps(template({"L": log_group()})))
        assert summary["ResourceIdentifierSummaries"] == [
            {
                "ResourceType": "AWS::Logs::LogGroup",
                "LogicalResourceIds": ["L"],
                "ResourceIdentifiers": ["LogGroupName"],
            }
        ]
