"""Where the construct of a plan may stand, and whose everything in it is."""

from aws_cdk import Annotations, Stack, Tags, Token
from constructs import Construct

from trainium_core.plan import Plan
from trainium_core.problems import PlanError, Problem
from trainium_runtime.naming import CLUSTER_TAG

_TAGS_CANNOT_CHANGE = "AWS::EC2::PlacementGroup"
"""The type whose tags are create-only, by the schema of CloudFormation's registry."""


def check_region(construct: Construct, plan: Plan) -> None:
    """Warn of a stack that may be deployed to any region.

    Raises PlanError where the stack is for another region than the plan: quota, zones and image are the plan's.
    """
    stack = Stack.of(construct)
    if Token.is_unresolved(stack.region):
        Annotations.of(construct).add_warning_v2(
            "trn:region",
            f"the plan is for {plan.region}, the stack for any region: give it env=Environment(region='{plan.region}')",
        )
    elif stack.region != plan.region:
        allowed = f"{stack.region}, the region of the stack {stack.stack_name}"
        fix = f"give the stack env=Environment(region='{plan.region}'), or the plan region='{stack.region}'"
        raise PlanError([Problem(key="region", got=plan.region, allowed=allowed, fix=fix)])


def tag_all(construct: Construct, plan: Plan) -> None:
    """Put the name of the plan's cluster on everything in a construct, and the plan's tags on all but placement groups.

    CloudFormation replaces a placement group whose tags change, and with it the nodes.
    """
    for key, value in plan.tags.items():
        Tags.of(construct).add(key, value, exclude_resource_types=[_TAGS_CANNOT_CHANGE])
    Tags.of(construct).add(CLUSTER_TAG, plan.cluster_name)
