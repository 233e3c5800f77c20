"""The budget and notices of a pilot."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from aws_cdk import Annotations, Aws, Stack
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from trainium_cdk.cdk_types import Key
from trainium_cdk.justification import justify
from trainium_cdk.physical_names import physical_name
from trainium_cdk.pilot.pilot_props import PilotProps
from trainium_cdk.storage.encryption_key import allow_service
from trainium_core.facts import facts
from trainium_core.plan.pilot_end import passed_end
from trainium_core.plan.settings.pilot import BudgetAction, PilotSettings
from trainium_runtime.naming import CLUSTER_TAG
from trainium_runtime.pilot_end import Deadline

_ATTEMPTS = 3  # for one event: the invocation and two retries (Lambda developer guide, asynchronous invocation)
_PERIOD_SECONDS = 900
_ALARMS = f"cloudwatch:{Aws.REGION}:{Aws.ACCOUNT_ID}:alarm:*"


class Pilot(Construct):
    """The topic for the notices of a pilot, and its budget. The controller warns of its end, and stops its nodes.

    `topic` is the pilot's own topic, whose tags store its state. `notices` is the topic of notices and alarms: the same
    one, or one of the app. `spent` is another topic, for the message that a budget that stops nodes is spent; None
    without such a budget.
    """

    notices: sns.ITopic
    props: PilotProps
    recorded_topic_arn: str
    spent: sns.Topic | None
    topic: sns.Topic

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        props: PilotProps,
        cluster_name: str,
        stops_nodes: bool = True,
        encryption_key: Key | None = None,
    ) -> None:
        """
        Args:
            props: The end, notices and budget.
            cluster_name: Name of the cluster.
            stops_nodes: Whether the nodes can be stopped without deleting the stack. Default: True.
            encryption_key: KMS key of the topics. Default: none.
        """
        super().__init__(scope, construct_id)
        self.props, self._stops_nodes, self._key = props, stops_nodes, encryption_key
        passed = props.end and passed_end(str(props.end.deadline), now=datetime.now(UTC))
        if passed:
            Annotations.of(self).add_warning_v2(
                "trn:end.passed",
                f"the pilot ended at {passed.got}: no nodes are launched, or the stack is deleted; set a later end",
            )
        self.topic = self._topic("Notices")
        name = physical_name(self, "Notices")
        cast(sns.CfnTopic, self.topic.node.default_child).topic_name = name
        self.notices = cast(sns.ITopic, props.notices or self.topic)
        self.recorded_topic_arn = Stack.of(self).format_arn(service="sns", resource=name)
        if props.notify_email is not None:
            sns.CfnSubscription(
                self, "Email", topic_arn=self.topic.topic_arn, protocol="email", endpoint=props.notify_email
            )
        budget = props.budget
        self._budget_name = budget_name(self, cluster_name, budget.action) if budget else ""
        self.spent = self._topic("Spent") if props.stops_at_budget and stops_nodes else None
        if budget is not None:
            spent = cast(sns.ITopic | None, self.spent) or self.notices
            for topic in {spent.node.path: spent, self.notices.node.path: self.notices}.values():
                self._allow_publishing(topic, "budgets", f"budgets::{Aws.ACCOUNT_ID}:*")
            self._add_budget(self._budget_name, budget.amount, cluster_name, spent)
        self._allow_publishing(self.notices, "cloudwatch", _ALARMS)

    @property
    def needs_controller(self) -> bool:
        """Whether the controller warns people or jobs of an end, stops nodes, or deletes the stack."""
        has_end = self.props.end is not None or self.props.capacity_block_id is not None
        return self.props.needs_schedule if self._stops_nodes else has_end

    @property
    def deletes_stack_at(self) -> Deadline | None:
        """When the stack is deleted; None if it stays."""
        end = self.props.end
        if end is None:
            return None
        action = end.action or ("sleep" if self._stops_nodes else "destroy")
        return end.deadline if action == "destroy" else None

    @property
    def key_arn(self) -> str | None:
        """ARN of the key of the topics."""
        return None if self._key is None else self._key.key_arn

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of the controller."""
        props = self.props
        warning_hours = PilotSettings.warning_hours if props.end is None else props.end.warning_hours
        settings = {"TOPIC": self.topic.topic_arn, "WARNING_HOURS": str(warning_hours)}
        if props.notices is not None:
            settings["NOTICES"] = self.notices.topic_arn
        if props.end is not None:
            # In UTC, because Lambda may not have a time zone database.
            settings["ENDS"] = str(props.end.deadline)
        if self.spent is not None and props.budget is not None:
            settings |= {"BUDGET": self._budget_name, "BUDGET_USD": str(props.budget.amount)}
        if props.capacity_block_id is not None:
            settings["CAPACITY_BLOCK"] = props.capacity_block_id
        if self._stops_nodes and props.idle_minutes is not None:
            settings["IDLE_MINUTES"] = str(props.idle_minutes)
        return settings

    def _topic(self, construct_id: str) -> sns.Topic:
        key = cast(kms.IKey | None, self._key)
        topic = sns.Topic(self, construct_id, enforce_ssl=True, master_key=key)
        if key is None:
            unencrypted = "holds times, sums and names; AWS Budgets cannot publish to a topic with the AWS managed key"
            justify(topic, checkov={"CKV_AWS_26": unencrypted})
        return topic

    def _allow_publishing(self, topic: sns.ITopic, service: str, source: str) -> None:
        """Allow a service to publish for this account, also with the key of the topic."""
        is_given = topic is self.notices and self.props.notices is not None
        allow_publishing(self, topic, service, source, is_given=is_given)
        if self._key is not None and not is_given:
            allow_service(self, "encryption_key", self._key, f"{service}.amazonaws.com")

    def _add_budget(self, name: str, usd: int, cluster_name: str, spent: sns.ITopic) -> None:
        """Add a budget for the costs of all resources with the tag trn:cluster.

        Its period is a calendar year. It counts no costs until the payer account activates the tag as a cost allocation
        tag.

        Args:
            spent: The topic for the message that the budget is spent.
        """
        budget = budgets.CfnBudget(
            Construct(self, "Budget"),
            "Budget",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_name=name,
                budget_type="COST",
                time_unit="ANNUALLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=float(usd), unit="USD"),
                cost_filters={"TagKeyValue": [f"user:{CLUSTER_TAG}${cluster_name}"]},
            ),
            notifications_with_subscribers=[
                _notification("ACTUAL", facts()["budgets"]["actual_percent"], self.notices),
                _notification("ACTUAL", 100, spent),
                _notification("FORECASTED", 100, self.notices),
            ],
        )
        # This includes the policies of the topics: AWS Budgets checks that it can publish.
        budget.node.add_dependency(self.notices, spent)


def budget_name(scope: Construct, cluster_name: str, action: BudgetAction) -> str:
    """The name of a budget, unique across the regions of an account.

    The name contains the action, because a change of the subscribers replaces the budget, and the new one needs another
    name. It also contains a part of the construct's address, because an update that renames the construct replaces the
    budget too.
    """
    stack = Stack.of(scope)
    own = f"-{cluster_name}-{stack.region}-{action}-{scope.node.addr[-4:]}"
    return stack.stack_name[: facts()["budgets"]["longest_name"] - len(own)] + own


def _notification(kind: str, percent: int, topic: sns.ITopic) -> budgets.CfnBudget.NotificationWithSubscribersProperty:
    return budgets.CfnBudget.NotificationWithSubscribersProperty(
        notification=budgets.CfnBudget.NotificationProperty(
            notification_type=kind, comparison_operator="GREATER_THAN", threshold=percent, threshold_type="PERCENTAGE"
        ),
        subscribers=[budgets.CfnBudget.SubscriberProperty(subscription_type="SNS", address=topic.topic_arn)],
    )


def allow_alarms(scope: Construct, topic: sns.ITopic) -> None:
    """Allow CloudWatch to publish to a topic of the app for alarms of this account, also with the key of the topic."""
    allow_publishing(scope, topic, "cloudwatch", _ALARMS, is_given=True)


def allow_publishing(scope: Construct, topic: sns.ITopic, service: str, source: str, *, is_given: bool) -> None:
    """Allow a service to publish for this account. A warning is added if the policy of the topic cannot be changed.

    Args:
        service: The first part of the service principal, such as budgets.
        source: The end of the ARNs of the senders, from the service's name on. It may contain wildcards.
        is_given: Whether the topic is the parameter `notices`, whose key is also changed.
    """
    # Sources: AWS Cost Management User Guide, creating an Amazon SNS topic for budget notifications; CloudWatch User
    # Guide, notifying users on alarm changes.
    principal: Any = iam.ServicePrincipal(f"{service}.amazonaws.com")
    statement = iam.PolicyStatement(
        principals=[principal],
        actions=["sns:Publish"],
        resources=[topic.topic_arn],
        conditions={
            "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
            "ArnLike": {"aws:SourceArn": f"arn:{Aws.PARTITION}:{source}"},
        },
    )
    if not topic.add_to_resource_policy(statement).statement_added:
        Annotations.of(scope).add_warning_v2(
            f"trn:notices.{service}",
            f"the policy of the imported topic {topic.node.path} is not changed here: it, and the policy of its "
            f"key, must allow {service}.amazonaws.com to publish, or notices of this service are lost",
        )
    if is_given and topic.master_key is not None:
        allow_service(scope, "notices", topic.master_key, f"{service}.amazonaws.com")


def add_alarm(scope: Construct, construct_id: str, *, function_name: str, what: str, topic_arn: str) -> None:
    """Add an alarm that notifies a topic when a function fails so often that Lambda may have dropped an event.

    A single error does not raise the alarm, because Lambda retries. The topic must allow CloudWatch to publish.

    Args:
        what: Sentences that name the function that fails, and the consequence.
    """
    cloudwatch.CfnAlarm(
        Construct(scope, construct_id),
        "Alarm",
        alarm_description=f"{what} Its errors are in the log group of the function {function_name}.",
        namespace="AWS/Lambda",
        metric_name="Errors",
        dimensions=[cloudwatch.CfnAlarm.DimensionProperty(name="FunctionName", value=function_name)],
        statistic="Sum",
        period=_PERIOD_SECONDS,
        evaluation_periods=1,
        threshold=_ATTEMPTS,
        comparison_operator="GreaterThanOrEqualToThreshold",
        treat_missing_data="notBreaching",
        alarm_actions=[topic_arn],
    )
