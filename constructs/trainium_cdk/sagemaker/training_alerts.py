"""Alerts for training jobs: a topic, a message at the end of every job, and an alarm."""

from collections.abc import Iterable

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from trainium_cdk.justification import justify

_ENDS = {"JobFailed": "FAILED", "JobSucceeded": "SUCCEEDED"}
"""The final states of jobs in AWS Batch, by the ID of their rule. A stopped job is FAILED."""

_ALARM_PERIOD_SECONDS = 300


class TrainingAlerts(Construct):
    """A topic that gets a message at the end of every job of a queue.

    `topic` and `alarm` are the CDK objects. The alarm on failed jobs is for dashboards and composite alarms. It sends
    no messages: a rule sends one with the reason.
    """

    alarm: cloudwatch.CfnAlarm
    topic: sns.Topic

    def __init__(self, scope: Construct, construct_id: str, *, queue_arn: str, email: str | None = None) -> None:
        """
        Args:
            queue_arn: ARN of the job queue.
            email: Address to subscribe; its owner must confirm the subscription. Default: none.
        """
        super().__init__(scope, construct_id)
        self.topic = sns.Topic(self, "Topic", enforce_ssl=True)
        unencrypted = "holds names and reasons of jobs; EventBridge cannot publish to a topic with the AWS managed key"
        justify(self.topic, checkov={"CKV_AWS_26": unencrypted})
        if email is not None:
            sns.CfnSubscription(self, "Email", topic_arn=self.topic.topic_arn, protocol="email", endpoint=email)
        rules = {name: self._rule(name, status, queue_arn) for name, status in _ENDS.items()}
        self._allow_publishing(rules.values())
        self.alarm = cloudwatch.CfnAlarm(
            self,
            "Alarm",
            alarm_description=f"A SageMaker training job of {Stack.of(self).stack_name} failed",
            namespace="AWS/Events",
            metric_name="MatchedEvents",
            dimensions=[cloudwatch.CfnAlarm.DimensionProperty(name="RuleName", value=rules["JobFailed"].ref)],
            statistic="Sum",
            period=_ALARM_PERIOD_SECONDS,
            evaluation_periods=1,
            threshold=1,
            comparison_operator="GreaterThanOrEqualToThreshold",
            treat_missing_data="notBreaching",
        )

    def _rule(self, name: str, status: str, queue_arn: str) -> events.CfnRule:
        return events.CfnRule(
            self,
            name,
            description=f"Training jobs that ended {status}",
            event_pattern={
                "source": ["aws.batch"],
                "detail-type": ["Batch Service Job State Change"],
                "detail": {"jobQueue": [queue_arn], "status": [status]},
            },
            # Not transformed: EventBridge does not escape values in a text (its user guide, input transformation), so a
            # reason with quotation marks would not be delivered.
            targets=[events.CfnRule.TargetProperty(id="Topic", arn=self.topic.topic_arn, input_path="$.detail")],
        )

    def _allow_publishing(self, rules: Iterable[events.CfnRule]) -> None:
        service: iam.IPrincipal = iam.ServicePrincipal("events.amazonaws.com")  # pyright: ignore[reportAssignmentType]
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[service],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={
                    "ArnEquals": {"aws:SourceArn": [rule.attr_arn for rule in rules]},
                    "StringEquals": {"aws:SourceAccount": Stack.of(self).account},
                },
            )
        )
