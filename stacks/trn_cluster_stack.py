"""TrnClusterStack: one Trainium cluster."""

from constructs import Construct

from trainium_cdk import Plan, PlanStack, TrainiumCluster


class TrnClusterStack(PlanStack):
    """The cluster of a plan."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(scope, construct_id, plan=plan)
        TrainiumCluster(self, "Cluster", plan=plan)
