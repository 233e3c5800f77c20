"""SageMakerTrainingStack: the resources for training jobs."""

from constructs import Construct

from trainium_cdk import Plan, PlannedTraining, PlanStack


class SageMakerTrainingStack(PlanStack):
    """The training resources of a plan."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(scope, construct_id, plan=plan)
        PlannedTraining(self, "Training", plan=plan)
