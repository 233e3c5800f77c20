"""PcsStack: Slurm on AWS PCS."""

from constructs import Construct

from trainium_cdk import PcsCluster, Plan, PlanStack


class PcsStack(PlanStack):
    """The AWS PCS cluster of a plan."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(scope, construct_id, plan=plan)
        PcsCluster(self, "Slurm", plan=plan)
