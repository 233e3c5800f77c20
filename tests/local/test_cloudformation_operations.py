"""What operations on stacks do beyond create, update and delete: stop, roll back, go on, wait for signals, page."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.deploy.clock import MovableClock
from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, parameter, template


@pytest.fixture(scope="module")
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def failing(**more: Any) -> dict[str, Any]:
    """A subnet in a VPC that does not exist: EC2 refuses it."""
    properties = {"VpcId": "vpc-00000000000000000", "CidrBlock": "10.0.0.0/24"}
    return {"Type": "AWS::EC2::Subnet", "Properties": properties, **more}


def signalled(count: int = 1, timeout: str = "PT10M") -> dict[str, Any]:
    """A resource that is there once it was signalled."""
    policy = {"ResourceSignal": {"Count": count, "Timeout": timeout}}
    return {"Type": "AWS::CloudFormation::WaitCondition", "Properties": {}, "CreationPolicy": policy}


def named(name: str, value: str = "x", **more: Any) -> dict[str, Any]:
    """An SSM parameter of a name, which a second one of the name cannot be created beside."""
    return {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Name": name, "Value": value}, **more}


def signal(stacks: Stacks, name: str, unique_id: str, status: str = "SUCCESS", resource: str = "W") -> None:
    stacks.api.signal_resource(StackName=name, LogicalResourceId=resource, UniqueId=unique_id, Status=status)


def statuses(stacks: Stacks, name: str, logical_id: str) -> list[str]:
    return [status for one, status in stacks.events(name) if one == logical_id]


class TestSignals:
    def test_a_resource_is_complete_once_it_has_all_its_signals(self, stacks: Stacks) -> None:
        name = stacks.create(template({"W": signalled(count=2)}))
        signal(stacks, name, "one")
        signal(stacks, name, "one")
        assert stacks.describe(name)["StackStatus"] == "CREATE_IN_PROGRESS"
        signal(stacks, name, "two")
        assert stacks.settled(name) == "CREATE_COMPLETE"
        assert "Received SUCCESS signal with UniqueId two" in stacks.reasons(name)

    def test_a_failure_signal_fails_the_resource(self, stacks: Stacks) -> None:
        name = stacks.create(template({"W": signalled()}))
        signal(stacks, name, "i-1", "FAILURE")
        assert stacks.settled(name) == "ROLLBACK_COMPLETE"
        assert stacks.failures(name) == "W: Received FAILURE signal with UniqueId i-1"

    def test_too_few_signals_within_the_timeout_fail_it(self, stacks: Stacks) -> None:
        name = stacks.create(template({"W": signalled(count=3, timeout="PT1S")}))
        assert stacks.settled(name) == "ROLLBACK_COMPLETE"
        assert stacks.failures(name) == "W: Failed to receive 3 resource signal(s) within the specified duration"

    def test_a_resource_that_waits_for_none_takes_none(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter()}))
        with pytest.raises(ClientError, match="is not waiting for signals"):
            signal(stacks, name, "one", resource="A")

    def test_a_stand_in_signals_for_instances_whose_user_data_would(self, stacks: Stacks) -> None:
        data = {"Fn::Base64": {"Fn::Sub": "#!/bin/sh\n/opt/aws/bin/cfn-signal -e $? --stack ${AWS::StackName}"}}
        name = stacks.deploy(template(group(data, CreationPolicy={"ResourceSignal": {"Count": 1}})))
        assert "Sent by a stand-in" in stacks.reasons(name)

    def test_a_stand_in_signals_to_a_wait_condition(self, stacks: Stacks) -> None:
        data = {"Fn::Base64": {"Fn::Sub": "#!/bin/sh\ncfn-signal -e 0 '${H}'"}}
        properties = {"Handle": {"Ref": "H"}, "Timeout": "600"}
        waits = {"Type": "AWS::CloudFormation::WaitCondition", "DependsOn": "G", "Properties": properties}
        handle = {"Type": "AWS::CloudFormation::WaitConditionHandle"}
        name = stacks.deploy(template({**group(data), "H": handle, "W": waits}))
        assert "Sent by a stand-in" in stacks.reasons(name)


def group(user_data: Any, **more: Any) -> dict[str, Any]:
    """An Auto Scaling group of one instance."""
    launch = {"LaunchTemplateData": {"ImageId": "ami-12c6146b", "InstanceType": "t3.micro", "UserData": user_data}}
    version = {"LaunchTemplateId": {"Ref": "T"}, "Version": {"Fn::GetAtt": ["T", "LatestVersionNumber"]}}
    subnet = {"VpcId": {"Ref": "V"}, "CidrBlock": "10.0.0.0/24"}
    size = {"MinSize": "1", "MaxSize": "1", "LaunchTemplate": version, "VPCZoneIdentifier": [{"Ref": "S"}]}
    return {
        "V": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "S": {"Type": "AWS::EC2::Subnet", "Properties": subnet},
        "T": {"Type": "AWS::EC2::LaunchTemplate", "Properties": launch},
        "G": {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": size, **more},
    }


class TestSideBySide:
    def test_a_failure_cancels_what_still_waits(self, stacks: Stacks) -> None:
        name = stacks.create(template({"W": signalled(), "X": signalled()}))
        signal(stacks, name, "i-1", "FAILURE", resource="X")
        assert stacks.settled(name) == "ROLLBACK_COMPLETE"
        assert "W: Resource creation cancelled" in stacks.failures(name)
        assert "The following resource(s) failed to create: [X, W]." in stacks.reasons(name)

    def test_what_does_not_depend_on_a_resource_that_waits_goes_on(self, stacks: Stacks) -> None:
        name = stacks.create(template({"W": signalled(), "A": parameter(), "B": parameter(DependsOn="W")}))
        assert statuses(stacks, name, "A") == ["CREATE_IN_PROGRESS", "CREATE_COMPLETE"]
        assert statuses(stacks, name, "B") == []
        signal(stacks, name, "one")
        assert stacks.settled(name) == "CREATE_COMPLETE"

    def test_a_stack_that_waits_can_be_deleted(self, stacks: Stacks) -> None:
        assert stacks.delete(stacks.create(template({"W": signalled()}))) == "DELETE_COMPLETE"


class TestCancelUpdate:
    def test_a_cancelled_update_is_rolled_back(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter("old")}))
        changed = template({"A": parameter("new"), "W": signalled()})
        stacks.api.update_stack(StackName=name, TemplateBody=json.dumps(changed))
        stacks.api.cancel_update_stack(StackName=name)
        assert stacks.settled(name) == "UPDATE_ROLLBACK_COMPLETE"
        assert stacks.value_of(name, "A") == "old"

    def test_only_a_running_update_can_be_cancelled(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": parameter()}))
        with pytest.raises(ClientError, match="CancelUpdateStack cannot be called from current stack status"):
            stacks.api.cancel_update_stack(StackName=name)


class TestFailedAndNotRolledBack:
    def failed_update(self, stacks: Stacks) -> str:
        name = stacks.deploy(template({"A": parameter("old")}))
        bad = template({"A": parameter("new"), "N": parameter(), "Z": failing(DependsOn=["A", "N"])})
        assert stacks.update(name, bad, DisableRollback=True) == "UPDATE_FAILED"
        return name

    def test_a_rollback_goes_back_to_where_the_stack_was_stable(self, stacks: Stacks) -> None:
        name = self.failed_update(stacks)
        stacks.update(name, template({"A": parameter("newer"), "Z": failing()}), DisableRollback=True)
        stacks.api.rollback_stack(StackName=name)
        assert stacks.settled(name) == "UPDATE_ROLLBACK_COMPLETE"
        assert stacks.value_of(name, "A") == "old"
        assert list(stacks.api.get_template(StackName=name)["TemplateBody"]["Resources"]) == ["A"]

    def test_it_can_be_fixed_forward_without_rollback_only(self, stacks: Stacks) -> None:
        name = self.failed_update(stacks)
        fixed = template({"A": parameter("new"), "N": parameter()})
        with pytest.raises(ClientError, match=r"non-terminal \[UPDATE_FAILED\] state"):
            stacks.update(name, fixed)
        assert stacks.update(name, fixed, DisableRollback=True) == "UPDATE_COMPLETE"

    def test_nothing_is_replaced_without_rollback(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({"A": named("/replaced/one")}))
        changed = template({"A": named("/replaced/two")})
        assert stacks.update(name, changed, DisableRollback=True) == "UPDATE_FAILED"
        assert "Replacement type updates not supported on stack with disable-rollback." in stacks.failures(name)

    @pytest.mark.parametrize(("retains", "end"), [(False, "DELETE_SKIPPED"), (True, "DELETE_COMPLETE")])
    def test_a_rolled_back_creation_keeps_what_is_retained_unless_except_on_create(
        self, stacks: Stacks, retains: bool, end: str
    ) -> None:
        wanted = template({"A": parameter(DeletionPolicy="Retain"), "Z": failing(DependsOn="A")})
        name = stacks.create(wanted, OnFailure="DO_NOTHING")
        stacks.api.rollback_stack(StackName=name, RetainExceptOnCreate=retains)
        assert stacks.settled(name) == "ROLLBACK_COMPLETE"
        assert statuses(stacks, name, "A")[-1] == end

    def test_on_failure_delete_leaves_no_stack(self, stacks: Stacks) -> None:
        stack_id = stacks.api.create_stack(
            StackName="on-failure-delete", TemplateBody=json.dumps(template({"Z": failing()})), OnFailure="DELETE"
        )["StackId"]
        assert stacks.settled(stack_id) == "DELETE_COMPLETE"
        assert "Delete requested by user." in stacks.reasons(stack_id)


class TestFailedRollback:
    @pytest.fixture
    def name(self, stacks: Stacks) -> str:
        """A stack in UPDATE_ROLLBACK_FAILED: its log group L went away during the update."""
        name = stacks.deploy(template({"A": parameter("old"), "L": log_group(1)}))
        changed = template({"A": parameter("new"), "L": log_group(3), "W": signalled()})
        stacks.api.update_stack(StackName=name, TemplateBody=json.dumps(changed))
        stacks.aws.client("logs").delete_log_group(logGroupName=stacks.physical_id(name, "L"))
        stacks.api.cancel_update_stack(StackName=name)
        assert stacks.settled(name) == "UPDATE_ROLLBACK_FAILED"
        return name

    def test_it_goes_on_when_the_cause_is_gone(self, stacks: Stacks, name: str) -> None:
        assert stacks.describe(name)["StackStatusReason"].endswith("failed to update: [L].")
        stacks.aws.client("logs").create_log_group(logGroupName=stacks.physical_id(name, "L"))
        stacks.api.continue_update_rollback(StackName=name)
        assert stacks.settled(name) == "UPDATE_ROLLBACK_COMPLETE"
        assert stacks.value_of(name, "A") == "old"

    @pytest.mark.parametrize("how", [{"ResourcesToSkip": ["L"]}, {"ForceRollback": True}])
    def test_what_fails_can_be_skipped(self, stacks: Stacks, name: str, how: dict[str, Any]) -> None:
        stacks.api.continue_update_rollback(StackName=name, **how)
        assert stacks.settled(name) == "UPDATE_ROLLBACK_COMPLETE"

    def test_only_what_failed_can_be_skipped(self, stacks: Stacks, name: str) -> None:
        with pytest.raises(ClientError, match=r"not \[A\]"):
            stacks.api.continue_update_rollback(StackName=name, ResourcesToSkip=["A"])


def log_group(days: int) -> dict[str, Any]:
    return {"Type": "AWS::Logs::LogGroup", "Properties": {"RetentionInDays": days}}


class TestFailedDeletion:
    @pytest.fixture
    def stack_id(self, stacks: Stacks) -> str:
        """A stack in DELETE_FAILED: its bucket B is not empty."""
        name = stacks.deploy(template({"A": parameter(), "B": {"Type": "AWS::S3::Bucket"}}))
        stack_id = stacks.describe(name)["StackId"]
        with pytest.raises(ClientError, match="only when the stack is in the DELETE_FAILED state"):
            stacks.api.delete_stack(StackName=name, RetainResources=["B"])
        stacks.aws.client("s3").put_object(Bucket=stacks.physical_id(name, "B"), Key="k", Body=b"")
        assert stacks.delete(name) == "DELETE_FAILED"
        return stack_id

    @pytest.mark.parametrize("how", [{"RetainResources": ["B"]}, {"DeletionMode": "FORCE_DELETE_STACK"}])
    def test_what_does_not_go_can_be_left(self, stacks: Stacks, stack_id: str, how: dict[str, Any]) -> None:
        stacks.api.delete_stack(StackName=stack_id, **how)
        assert stacks.settled(stack_id) == "DELETE_COMPLETE"
        assert statuses(stacks, stack_id, "B")[-1] == "DELETE_SKIPPED"


class TestPages:
    def test_events_come_in_pages_that_hold_while_more_are_added(self, stacks: Stacks) -> None:
        name = stacks.deploy(template({f"P{number}": parameter() for number in range(60)}))
        first = stacks.api.describe_stack_events(StackName=name)
        assert len(first["StackEvents"]) == 100
        stacks.update(name, template({"P0": parameter("more")}))
        second = stacks.api.describe_stack_events(StackName=name, NextToken=first["NextToken"])
        assert len(second["StackEvents"]) == 60 * 2 + 2 - 100
        assert "NextToken" not in second

    @pytest.mark.parametrize("action", ["describe_stacks", "list_stacks", "list_exports"])
    def test_a_token_that_no_page_gave_is_refused(self, stacks: Stacks, action: str) -> None:
        with pytest.raises(ClientError, match=r"\(ValidationError\)"):
            getattr(stacks.api, action)(NextToken="made-up")


class TestRequests:
    def test_a_creation_that_takes_too_long_is_rolled_back(self, stacks: Stacks, embedded_aws: EmbeddedAws) -> None:
        name = stacks.create(template({"W": signalled(timeout="PT12H")}), TimeoutInMinutes=1)
        MovableClock(connection=embedded_aws.connection).forward(minutes=2)
        assert stacks.settled(name) == "ROLLBACK_COMPLETE"
        assert "Stack creation time exceeded the specified timeout." in stacks.reasons(name)

    def test_settings_are_shown_as_they_were_given(self, stacks: Stacks) -> None:
        topic = "arn:aws:sns:us-west-2:123456789012:events"
        settings = {
            "NotificationARNs": [topic],
            "TimeoutInMinutes": 7,
            "RollbackConfiguration": {"MonitoringTimeInMinutes": 3},
            "DisableRollback": True,
        }
        arns = parameter({"Fn::Select": [0, {"Ref": "AWS::NotificationARNs"}]})
        name = stacks.deploy(template({"A": arns}), **settings)
        assert {key: value for key, value in stacks.describe(name).items() if key in settings} == settings
        assert stacks.value_of(name, "A") == topic
