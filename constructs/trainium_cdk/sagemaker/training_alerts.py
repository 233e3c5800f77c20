"""Alerts for training jobs: a topic, a message for every failed job, and an alarm."""

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from trainium_cdk.justification import justify

_EVENT_SOURCE = "aws.sagemaker"
_ALARM_PERIOD_SECONDS = 300


class TrainingAlerts(Construct):
    """A topic that gets a message for every failed job whose name begins with a prefix.

    `topic` and `alarm` are the CDK objects. The alarm is for dashboards and composite alarms. It sends no messages: the
    rule sends one with the reason.
    """

    alarm: cloudwatch.CfnAlarm
    topic: sns.Topic

    def __init__(self, scope: Construct, construct_id: str, *, job_prefix: str, email: str | None = None) -> None:
        """
        Args:
            job_prefix: Prefix of the names of the jobs.
            email: Address to subscribe; its owner must confirm the subscription. Default: none.
        """
        super().__init__(scope, construct_id)
        self.topic = sns.Topic(self, "Topic", enforce_ssl=True)
        unencrypted = "holds names and reasons of jobs; EventBridge cannot publish to a topic with the AWS managed key"
        justify(self.topic, checkov={"CKV_AWS_26": unencrypted})
        if email is not None:
            sns.CfnSubscription(self, "Email", topic_arn=self.topic.topic_arn, protocol="email", endpoint=email)
        rule = self._rule(job_prefix)
        self._allow_publishing(rule)
        self.alarm = cloudwatch.CfnAlarm(
            self,
            "Alarm",
            alarm_description=f"A SageMaker training job {job_prefix}* failed",
            namespace="AWS/Events",
            metric_name="MatchedEvents",
            dimensions=[cloudwatch.CfnAlarm.DimensionProperty(name="RuleName", value=rule.ref)],
            statistic="Sum",
            period=_ALARM_PERIOD_SECONDS,
            evaluation_periods=1,
            threshold=1,
            comparison_operator="GreaterThanOrEqualToThreshold",
            treat_missing_data="notBreaching",
        )

    def _rule(self, job_prefix: str) -> events.CfnRule:
        return events.CfnRule(
            self,
            "JobFailed",
            description=f"SageMaker training jobs {job_prefix}* that failed",
            event_pattern={
                "source": [_EVENT_SOURCE],
                "detail-type": ["SageMaker Training Job State Change"],
                "detail": {"TrainingJobName": [{"prefix": job_prefix}], "TrainingJobStatus": ["Failed"]},
            },
            # Not transformed: EventBridge does not escape values in a text (its user guide, input transformation), so a
            # reason with quotation marks would not be delivered.
            targets=[events.CfnRule.TargetProperty(id="Topic", arn=self.topic.topic_arn, input_path="$.detail")],
        )

    def _allow_publishing(self, rule: events.CfnRule) -> None:
        service: iam.IPrincipal = iam.ServicePrincipal("events.amazonaws.com")  # pyright: ignore[reportAssignmentType]
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[service],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={
                    "ArnEquals": {"aws:SourceArn": rule.attr_arn},
                    "StringEquals": {"aws:SourceAccount": Stack.of(self).account},
                },
            )
        )
