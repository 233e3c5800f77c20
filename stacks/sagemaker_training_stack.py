"""SageMakerTrainingStack: the resources for training jobs, with outputs for users and `trn run`."""

from constructs import Construct

from stacks.plan_stack import PlanStack
from trainium_cdk.sagemaker.sagemaker_training import PlannedTraining
from trainium_core import Plan


class SageMakerTrainingStack(PlanStack):
    """The training resources of a plan."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        description = f"SageMaker training on AWS Trainium, {plan.cluster_name}"
        super().__init__(scope, construct_id, plan=plan, description=description)
        PlannedTraining(self, "Training", plan=plan).add_outputs()
        self.add_output("Destroy", "Deletes the stack; retained resources stay", self.destroy_command)
