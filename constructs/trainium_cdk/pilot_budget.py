"""What AWS Budgets watches of a cluster."""

from aws_cdk import Stack
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_sns as sns
from constructs import Construct

from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_runtime.naming import CLUSTER_TAG


class PilotBudget(Construct):
    """A budget on the costs of everything that has the tag trn:cluster, by calendar year: a pilot is shorter.

    The tag must be activated as a cost allocation tag by whoever pays for the account, or the budget sees nothing.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: Plan, notices: sns.Topic, spent: sns.Topic
    ) -> None:
        """notices: gets what is nearly spent, or forecast to be. spent: once all is."""
        super().__init__(scope, construct_id)
        nearly = facts()["budgets"]["actual_percent"]
        budget = budgets.CfnBudget(
            self,
            "Budget",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_name=budget_name(self, plan),
                budget_type="COST",
                time_unit="ANNUALLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=float(plan.pilot.budget_usd or 0), unit="USD"),
                cost_filters={"TagKeyValue": [f"user:{CLUSTER_TAG}${plan.cluster_name}"]},
            ),
            notifications_with_subscribers=[
                _notification("ACTUAL", nearly, notices),
                _notification("ACTUAL", 100, spent),
                _notification("FORECASTED", 100, notices),
            ],
        )
        # With their policies: AWS Budgets must be able to publish.
        budget.node.add_dependency(notices, spent)


def budget_name(scope: Construct, plan: Plan) -> str:
    """Unlike most names it is the account's, whatever the region.

    A changed action changes the subscribers, for which CloudFormation makes a new budget: under another name.
    """
    of_plan = f"-{plan.cluster_name}-{plan.region}-{plan.pilot.budget_action}"
    return Stack.of(scope).stack_name[: facts()["budgets"]["longest_name"] - len(of_plan)] + of_plan


def _notification(kind: str, percent: int, topic: sns.Topic) -> budgets.CfnBudget.NotificationWithSubscribersProperty:
    return budgets.CfnBudget.NotificationWithSubscribersProperty(
        notification=budgets.CfnBudget.NotificationProperty(
            notification_type=kind, comparison_operator="GREATER_THAN", threshold=percent, threshold_type="PERCENTAGE"
        ),
        subscribers=[budgets.CfnBudget.SubscriberProperty(subscription_type="SNS", address=topic.topic_arn)],
    )
