"""PcsStack: Slurm on AWS PCS, with outputs for its users."""

from constructs import Construct

from stacks.plan_stack import PlanStack
from trainium_cdk import PcsCluster
from trainium_core import Plan


class PcsStack(PlanStack):
    """The AWS PCS cluster of a plan."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        description = f"Slurm on AWS PCS with AWS Trainium, {plan.cluster_name}"
        super().__init__(scope, construct_id, plan=plan, description=description)
        PcsCluster(self, "Slurm", plan=plan).add_outputs()
        self.add_output("Destroy", "Deletes the stack; retained resources stay", self.destroy_command)
        self.add_end(plan)
