"""PcsStack: Slurm on AWS PCS."""

from aws_cdk import Environment, Stack
from constructs import Construct

from trainium_core import Plan
from trainium_core.naming import stack_name


class PcsStack(Stack):
    """The AWS PCS cluster of a plan, in the plan's region and the account of the deploying credentials."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=stack_name(construct_id, plan.cluster_name),
            env=Environment(region=plan.region),
            description=f"Slurm on AWS PCS with AWS Trainium, {plan.cluster_name}",
        )
        raise NotImplementedError("the stack of AWS PCS is not built yet")
