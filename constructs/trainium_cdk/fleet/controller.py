"""The controller of a cluster: maintains its nodes during a deployment and after it, and ends its pilot."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sns as sns
from constructs import Construct

from trainium_cdk.fleet.group_arn import allow_on_group, allow_resizing
from trainium_cdk.fleet.node_records import (
    NodeRecords,
    allow_reading_last_job,
    allow_reading_records,
    allow_reading_usage,
)
from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify, justify_wildcard
from trainium_cdk.pilot.pilot import Pilot, add_alarm
from trainium_cdk.pilot.sleep_switch import SleepSwitch
from trainium_cdk.pilot.stack_deletion import StackDeletion
from trainium_cdk.service_role import allow, service_role
from trainium_cdk.storage.disposable_bucket import named_bucket_arn
from trainium_core.facts import facts
from trainium_core.plan.settings.node import CloudWatchMetrics
from trainium_runtime.naming import (
    CLUSTER_TAG,
    IDLE_NOTICE_TAG,
    METRICS_EVENT,
    NODE_REASON_TAG,
    NODE_STATE_TAG,
    NOTIFIED_TAG,
    SPENT_TAG,
    STOPPED_TAG,
)
from trainium_wire.job_keys import job_keys

_LONGEST_INVOCATION = 15  # minutes, Lambda's limit: a deployment waits for nodes


class Controller(HandlerFunction):
    """A function that looks at the cluster for every event, and acts on what it sees.

    It looks for every node record, for every terminated instance, during a deployment, and for a pilot every few
    minutes and when its budget is spent. It logs each record, tags the instance with its state, replaces failed nodes
    within the limit, writes the membership of the cluster once every node is verified, sets the size of the group, and
    warns of the end of the pilot. Every few minutes, it prints the metrics of the nodes. If wanted, it publishes a
    notice at the end of each job. It cannot delete the stack: `StackDeletion` can, only after the end. It keeps its
    state in tags of the topic of the pilot.

    `settings` are its environment variables.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        nodes: int,
        group_name: str | None = None,
        records: NodeRecords,
        replacements: int = 0,
        pilot: Pilot | None = None,
        sleep: SleepSwitch | None = None,
        metrics: CloudWatchMetrics = "none",
    ) -> None:
        """
        Args:
            cluster_name: Value of the tag trn:cluster of the group and of its instances.
            nodes: Number of nodes.
            group_name: The nodes' Auto Scaling group. Default: none; the controller only ends the pilot, and writes
                notices for jobs.
            records: The bucket of the node records, the membership, which has the notices, and the usage.
            replacements: Maximum number of failed nodes that are replaced in any 24 hours. Default: 0.
            pilot: The pilot, whose topic gets notices, and an alarm when the controller fails. Default: none.
            sleep: The switch of the cluster. Default: the cluster never sleeps.
            metrics: The metrics of the nodes that it prints for CloudWatch. Default: none.
        """
        self._cluster_name, self._group_name = cluster_name, group_name
        self._schedule_role: iam.IRole | None = None
        stack = Stack.of(scope)
        settings = {"CLUSTER": cluster_name, "STACK_ID": stack.stack_id, "RECORDS_BUCKET": records.bucket.bucket_name}
        if group_name:
            settings |= {"GROUP": group_name, "REPLACEMENTS": str(replacements)}
        deletion = None
        if pilot is not None and pilot.needs_controller:
            settings |= {**pilot.settings, "NODES": str(nodes), "ASLEEP": sleep.asleep if sleep else "false"}
            if pilot.deletes_stack_at is not None:
                deletion = StackDeletion(
                    scope,
                    "StackDeletion",
                    ends=pilot.deletes_stack_at,
                    capacity_block_id=pilot.props.capacity_block_id,
                )
                settings["STACK_DELETION"] = deletion.arn
        if metrics != "none":
            settings["METRICS"] = metrics
        if pilot is not None and pilot.props.job_notices:
            settings["JOB_NOTICES"] = pilot.notices.topic_arn
        self.settings: Mapping[str, str] = settings
        super().__init__(
            scope,
            construct_id,
            handler="controller",
            timeout_minutes=_LONGEST_INVOCATION,
            environment=settings,
        )
        self._allow_writing_membership(records)
        if group_name:
            self._control_nodes(group_name, records, replacements)
        if pilot is not None and (pilot.needs_controller or pilot.props.job_notices):
            self._publish_notices(pilot)
        if pilot is not None and pilot.needs_controller:
            self._end_pilot(pilot, records)
        if pilot is not None and pilot.props.job_notices:
            self._publish_job_ends(records)
        if metrics != "none":
            allow_reading_usage(self, records)
            event = json.dumps({METRICS_EVENT: "<aws.scheduler.scheduled-time>"})
            minutes = facts()["metrics"]["minutes_between_runs"]
            self._schedule("MetricsSchedule", "Prints the metrics of the nodes", minutes=minutes, event=event)
        if deletion is not None:
            self.allow(actions=["lambda:InvokeFunction"], resources=[deletion.arn])
            # Both are needed until the stack is deleted: the deletion is retried.
            self.node.add_dependency(deletion)
        if pilot is not None:
            what = (
                "The controller is failing: failed nodes might not be replaced, jobs might get no notice, and the "
                "pilot might not end."
            )
            add_alarm(self, "Fails", function_name=self.name, what=what, topic_arn=pilot.notices.topic_arn)

    def _control_nodes(self, group_name: str, records: NodeRecords, replacements: int) -> None:
        self.allow_describing_its_stack()
        actions = ("DescribeAutoScalingGroups", "DescribeScalingActivities")
        self.allow_reading([*(f"autoscaling:{action}" for action in actions), "ec2:DescribeInstances"])
        allow_resizing(self, group_name=group_name, cluster_name=self._cluster_name)
        if replacements:
            allow_on_group(self, "autoscaling:SetInstanceHealth", group_name=group_name)
        self._allow_on_nodes(["ec2:GetConsoleOutput"])
        tags = {"ForAllValues:StringEquals": {"aws:TagKeys": [NODE_STATE_TAG, NODE_REASON_TAG]}}
        self._allow_on_nodes(["ec2:CreateTags"], tags)
        allow_reading_records(self, records)
        self.allow_calling_itself()
        self.call_on_object("Records", records.bucket, records.prefix)
        self.call_on_event(
            "Departures",
            source="aws.autoscaling",
            detail_types=["EC2 Instance Terminate Successful"],
            detail={"AutoScalingGroupName": [group_name]},
        )

    def _allow_writing_membership(self, records: NodeRecords) -> None:
        # Without ListBucket, S3 answers 403 instead of 404 while there is no membership.
        self.allow(actions=["s3:ListBucket"], resources=[named_bucket_arn(records.bucket)])
        self.allow(actions=["s3:GetObject", "s3:PutObject"], resources=[records.membership_arn])
        records.allow_key(self, writing=True)

    def _allow_on_nodes(
        self, actions: Sequence[str], conditions: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """Allow actions on the instances of the cluster, and no others."""
        instances = Stack.of(self).format_arn(service="ec2", resource="instance", resource_name="*")
        of_cluster = {"StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": self._cluster_name}}
        self.allow(actions=actions, resources=[instances], conditions={**of_cluster, **(conditions or {})})
        justify_wildcard(self, instances, f"instances with the cluster's own tag {CLUSTER_TAG}, by condition")

    def _publish_notices(self, pilot: Pilot) -> None:
        if pilot.props.notices is None:
            self.allow(actions=["sns:Publish"], resources=[pilot.notices.topic_arn])
        else:
            pilot.notices.grant_publish(self.role)
        if pilot.key_arn is not None:
            self.allow(actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[pilot.key_arn])

    def _publish_job_ends(self, records: NodeRecords) -> None:
        """Publish a notice for each new end of a job. An object of the job prevents a second one."""
        keys = job_keys("*")
        read = [named_bucket_arn(records.bucket, key) for key in (keys.job, keys.end, keys.notified)]
        self.allow(actions=["s3:GetObject"], resources=read)
        self.allow(actions=["s3:PutObject"], resources=read[-1:])
        for arn in read:
            justify_wildcard(self, arn, "one object for each job; job IDs are not known at synthesis")
        object_key = {"key": [{"wildcard": keys.end}]}  # Also matches the ends of attempts.
        detail = {"bucket": {"name": [records.bucket.bucket_name]}, "object": object_key}
        self.call_on_event("JobEnds", source="aws.s3", detail_types=["Object Created"], detail=detail)

    def _end_pilot(self, pilot: Pilot, records: NodeRecords) -> None:
        topic = pilot.topic.topic_arn
        self.allow_describing_its_stack()
        self.allow(actions=["sns:ListTagsForResource"], resources=[topic])
        tags = [STOPPED_TAG, NOTIFIED_TAG, SPENT_TAG, IDLE_NOTICE_TAG]
        self.allow(
            actions=["sns:TagResource", "sns:UntagResource"],
            resources=[topic],
            conditions={"ForAllValues:StringEquals": {"aws:TagKeys": tags}},
        )
        if "CAPACITY_BLOCK" in self.settings:
            self.allow_reading(["ec2:DescribeCapacityReservations"])
        if "IDLE_MINUTES" in self.settings:
            allow_reading_usage(self, records)
            allow_reading_last_job(self, records)
        if pilot.spent is not None:
            self._subscribe_to(pilot.spent)
        minutes = facts()["pilot"]["minutes_between_runs"]
        self._schedule("Schedule", "Looks at the pilot", minutes=minutes, event="{}")

    def _subscribe_to(self, topic: sns.Topic) -> None:
        """Look at once when a message is published to the topic."""
        sns.CfnSubscription(self, "Spent", topic_arn=topic.topic_arn, protocol="lambda", endpoint=self.arn)
        lambda_.CfnPermission(
            self,
            "SpentMayCall",
            action="lambda:InvokeFunction",
            function_name=self.arn,
            principal="sns.amazonaws.com",
            source_arn=topic.topic_arn,
        )

    def _schedule(self, construct_id: str, description: str, *, minutes: int, event: str) -> None:
        role = self._schedule_role
        if role is None:
            role = self._schedule_role = service_role(
                self,
                "ScheduleRole",
                "scheduler.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            )
            allow(role, ["lambda:InvokeFunction"], [self.arn])
        schedule = scheduler.CfnSchedule(
            self,
            construct_id,
            description=description,
            schedule_expression=f"rate({minutes} minutes)",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=self.arn,
                role_arn=role.role_arn,
                input=event,
                # The next look makes up for a lost one. A lost run of the metrics leaves a gap.
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=60 * minutes, maximum_retry_attempts=2
                ),
            ),
        )
        # Scheduler assumes the role when the schedule is created, and fails if the role is too new
        # (github.com/aws/aws-sdk-js-v3, issue 6494). Creating the policy in between gives IAM time.
        schedule.node.add_dependency(role)
        justify(schedule, checkov={"CKV_AWS_297": "its input is a constant"})
