"""PcsStack: Slurm on AWS PCS, with outputs for its users."""

from aws_cdk import CfnOutput, Environment, Stack
from constructs import Construct

from stacks.end_output import add_end
from trainium_cdk import PcsCluster
from trainium_cdk.fleet.cluster_names import tag_all
from trainium_core import Plan
from trainium_core.naming import stack_name
from trainium_core.nodes.next_steps import destroy_command


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
        slurm = PcsCluster(self, "Slurm", plan=plan)
        tag_all(self, plan.cluster_name, plan.tags)
        slurm.add_outputs()
        CfnOutput(
            self, "Destroy", description="Removes everything", value=destroy_command(construct_id, plan.cluster_name)
        )
        add_end(self, plan)
