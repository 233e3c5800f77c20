"""What ends a pilot in time, and within its budget, and who is notified when that fails."""

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from trainium_cdk.function_alarm import FunctionAlarm
from trainium_cdk.justification import justify
from trainium_cdk.node_keeper import NodeKeeper
from trainium_cdk.node_records import NodeRecords
from trainium_cdk.pilot_budget import PilotBudget, budget_name
from trainium_cdk.pilot_clock import PilotClock
from trainium_cdk.sleep_switch import SleepSwitch
from trainium_core.plan import Plan


class Pilot(Construct):
    """The clock and the budget of a plan, as far as it has them, and the topic that both of them publish to.

    The topic also gets the alarm of a clock or keeper that fails.

    `topic` is the CDK object, `clock` the construct, None if nothing ends by itself.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: Plan,
        group_name: str | None = None,
        sleep: SleepSwitch | None = None,
        keeper: NodeKeeper | None = None,
        records: NodeRecords | None = None,
        precompile_group_name: str | None = None,
    ) -> None:
        """
        group_name: the nodes' Auto Scaling group, which has the tag trn:cluster. Default: none, and then nodes go with
        the stack alone.
        sleep: what the clock leaves to others. Default: the cluster never sleeps.
        keeper: notifies jobs that nodes stop soon. Default: none.
        records: where nodes say whether they are in use. Default: nowhere; then idle nodes run on.
        precompile_group_name: the Auto Scaling group of the host that compiles ahead. Default: none.
        """
        super().__init__(scope, construct_id)
        self.topic = _topic(self, "Notices")
        if plan.pilot.notify_email is not None:
            sns.CfnSubscription(
                self, "Email", topic_arn=self.topic.topic_arn, protocol="email", endpoint=plan.pilot.notify_email
            )
        self.clock = None
        if plan.ends_by_itself if group_name else plan.pilot.ends is not None:
            self.clock = PilotClock(
                self,
                "Clock",
                plan=plan,
                group_name=group_name,
                topic=self.topic,
                sleep=sleep,
                keeper=keeper,
                records=records,
                budget=budget_name(self, plan) if plan.pilot.stops_at_budget else None,
                precompile_group_name=precompile_group_name,
            )
        if plan.pilot.budget_usd is not None:
            spent = self.topic
            if plan.pilot.stops_at_budget and self.clock is not None:
                spent = _topic(self, "Spent")
                self.clock.subscribe_to(spent)
            for topic in {spent.node.path: spent, self.topic.node.path: self.topic}.values():
                _let_publish(topic, "budgets", f"budgets::{Aws.ACCOUNT_ID}:*")
            PilotBudget(self, "Budget", plan=plan, notices=self.topic, spent=spent)
        self._alarm_on_failures(keeper)

    def _alarm_on_failures(self, keeper: NodeKeeper | None) -> None:
        _let_publish(self.topic, "cloudwatch", f"cloudwatch:{Aws.REGION}:{Aws.ACCOUNT_ID}:alarm:*")
        if self.clock is not None:
            ending = "The clock of the pilot fails: its end, its warnings and the stop at a spent budget may not come."
            name = self.clock.function_name
            FunctionAlarm(self, "ClockFails", function_name=name, what=ending, topic_arn=self.topic.topic_arn)
        if keeper is not None:
            keeping = "The keeper of the nodes fails: failed nodes are not replaced, and jobs may get no notice."
            FunctionAlarm(
                self, "KeeperFails", function_name=keeper.function_name, what=keeping, topic_arn=self.topic.topic_arn
            )


def _topic(scope: Construct, construct_id: str) -> sns.Topic:
    topic = sns.Topic(scope, construct_id, enforce_ssl=True)
    unencrypted = "holds times, sums and names; AWS Budgets cannot publish under the key that AWS manages"
    justify(topic, checkov={"CKV_AWS_26": unencrypted})
    return topic


def _let_publish(topic: sns.Topic, service: str, source: str) -> None:
    """Let a service publish for this account. source: the end of the ARNs of what sends, from the service's name on."""
    # Sources: AWS Cost Management User Guide, creating an Amazon SNS topic for budget notifications; CloudWatch User
    # Guide, notifying users on alarm changes.
    principal: iam.IPrincipal = iam.ServicePrincipal(f"{service}.amazonaws.com")  # pyright: ignore[reportAssignmentType]
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            principals=[principal],
            actions=["sns:Publish"],
            resources=[topic.topic_arn],
            conditions={
                "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                "ArnLike": {"aws:SourceArn": f"arn:{Aws.PARTITION}:{source}"},
            },
        )
    )
