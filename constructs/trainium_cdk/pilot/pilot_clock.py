"""The clock of a pilot: a function that runs on a schedule."""

from aws_cdk import Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sns as sns
from constructs import Construct

from trainium_cdk.fleet.group_arn import allow_resizing
from trainium_cdk.fleet.node_reconciler import NodeReconciler
from trainium_cdk.fleet.node_records import NodeRecords, allow_reading_usage
from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify
from trainium_cdk.pilot.pilot_props import PilotProps
from trainium_cdk.pilot.sleep_switch import SleepSwitch
from trainium_cdk.service_role import allow, service_role
from trainium_core.facts import facts
from trainium_runtime.naming import IDLE_NOTICE_TAG, NOTIFIED_TAG, SPENT_TAG, STOPPED_TAG


class PilotClock(Construct):
    """A function that runs every few minutes. It warns before the end, and stops and launches nodes.

    It can set the size of the nodes' group, from 0 to its maximum. With the action destroy it can also delete its
    stack, which CloudFormation does with the role that deployed the stack. It keeps its state in tags of its topic.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        pilot: PilotProps,
        cluster_name: str,
        nodes: int,
        topic: sns.Topic,
        group_name: str | None = None,
        sleep: SleepSwitch | None = None,
        reconciler: NodeReconciler | None = None,
        records: NodeRecords | None = None,
        budget: str | None = None,
    ) -> None:
        """
        Args:
            nodes: Number of nodes.
            topic: Topic of the notices. Its tags hold the state of the clock.
            group_name: The nodes' Auto Scaling group, with the tag trn:cluster. Default: none; the clock only warns
                and deletes the stack.
            sleep: The switch of the cluster. Default: the cluster never sleeps.
            reconciler: The node reconciler, which notifies jobs before nodes stop. Default: none.
            records: The bucket with the nodes' usage. Default: none; idle nodes keep running.
            budget: Name of the budget that stops the nodes. Default: none.
        """
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        stops_idle = records is not None and pilot.idle_minutes is not None
        block = pilot.capacity_block_id if group_name is not None else None
        action = pilot.action or ("destroy" if group_name is None else "sleep")
        self.settings = _settings(pilot, action, budget, block)
        if stops_idle:
            self.settings["IDLE_MINUTES"] = str(pilot.idle_minutes)
        self._function = function = HandlerFunction(
            self,
            "Clock",
            handler="pilot_clock",
            timeout_minutes=1,
            environment={
                **self.settings,
                **({"GROUP": group_name} if group_name else {}),
                **({"RECONCILER": reconciler.arn} if reconciler else {}),
                **({"RECORDS_BUCKET": records.bucket.bucket_name} if records and stops_idle else {}),
                "STACK_ID": stack.stack_id,
                "TOPIC": topic.topic_arn,
                "CLUSTER": cluster_name,
                "NODES": str(nodes),
                "ASLEEP": sleep.asleep if sleep else "false",
            },
        )
        self.arn, self.function_name = function.arn, function.name
        function.allow(actions=["sns:ListTagsForResource", "sns:Publish"], resources=[topic.topic_arn])
        function.allow(
            actions=["sns:TagResource", "sns:UntagResource"],
            resources=[topic.topic_arn],
            conditions={
                "ForAllValues:StringEquals": {"aws:TagKeys": [STOPPED_TAG, NOTIFIED_TAG, SPENT_TAG, IDLE_NOTICE_TAG]}
            },
        )
        on_stack = ["cloudformation:DescribeStacks"]
        if action == "destroy":
            on_stack.append("cloudformation:DeleteStack")
        function.allow(actions=on_stack, resources=[stack.stack_id])
        if group_name:
            in_block = ["ec2:DescribeCapacityReservations"] if block else []
            function.allow_reading(["autoscaling:DescribeAutoScalingGroups", *in_block])
            allow_resizing(function, group_name=group_name, cluster_name=cluster_name)
        if records and stops_idle:
            allow_reading_usage(function, records)
        if reconciler:
            function.allow(actions=["lambda:InvokeFunction"], resources=[reconciler.arn])
        self._schedule()

    def allow_publishing_with(self, key_arn: str) -> None:
        """Allow the function to publish to topics that are encrypted with a key."""
        self._function.allow(actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[key_arn])

    def subscribe_to(self, topic: sns.Topic) -> None:
        """Run the clock at once when a message is published to the topic."""
        sns.CfnSubscription(self, "Hears", topic_arn=topic.topic_arn, protocol="lambda", endpoint=self.arn)
        lambda_.CfnPermission(
            self,
            "HearsMayCall",
            action="lambda:InvokeFunction",
            function_name=self.arn,
            principal="sns.amazonaws.com",
            source_arn=topic.topic_arn,
        )

    def _schedule(self) -> None:
        stack = Stack.of(self)
        role = service_role(
            self,
            "ScheduleRole",
            "scheduler.amazonaws.com",
            conditions={"StringEquals": {"aws:SourceAccount": stack.account}},
        )
        allow(role, ["lambda:InvokeFunction"], [self.arn])
        minutes = facts()["pilot"]["minutes_between_runs"]
        schedule = scheduler.CfnSchedule(
            self,
            "Schedule",
            description="Runs the clock of the pilot",
            schedule_expression=f"rate({minutes} minutes)",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=self.arn,
                role_arn=role.role_arn,
                input='{"kind": "schedule"}',
                # The next invocation makes up for a lost one.
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=60 * minutes, maximum_retry_attempts=2
                ),
            ),
        )
        # Scheduler assumes the role when the schedule is created, and fails if the role is too new
        # (github.com/aws/aws-sdk-js-v3, issue 6494). Creating the policy in between gives IAM time.
        schedule.node.add_dependency(role)
        justify(schedule, checkov={"CKV_AWS_297": "its input is a constant"})


def _settings(pilot: PilotProps, action: str, budget: str | None, block: str | None) -> dict[str, str]:
    """The settings of the clock. They are also a property of the fleet gate, so that a change updates the gate."""
    settings = {"WARNING_HOURS": str(pilot.warning_hours), "ENDS_ACTION": action}
    if pilot.end is not None:
        # In UTC, because Lambda may not have a time zone database.
        settings["ENDS"] = str(pilot.end)
    if budget is not None:
        settings |= {"BUDGET": budget, "BUDGET_USD": str(pilot.budget_usd)}
    if block is not None:
        settings["CAPACITY_BLOCK"] = block
    return settings
