"""SageMakerTrainingStack: the resources for training jobs, with outputs for users and `trn run`."""

from aws_cdk import CfnOutput, Environment, Stack
from constructs import Construct

from trainium_cdk.fleet.cluster_names import tag_all
from trainium_cdk.sagemaker.sagemaker_training import PlannedTraining
from trainium_core import Plan
from trainium_core.naming import stack_name
from trainium_core.nodes.next_steps import destroy_command


class SageMakerTrainingStack(Stack):
    """The training resources of a plan, in the plan's region and the account of the deploying credentials."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=stack_name(construct_id, plan.cluster_name),
            env=Environment(region=plan.region),
            description=f"SageMaker training on AWS Trainium, {plan.cluster_name}",
        )
        training = PlannedTraining(self, "Training", plan=plan)
        tag_all(self, plan.cluster_name, plan.tags)
        training.add_outputs()
        destroy = destroy_command(construct_id, plan.cluster_name)
        CfnOutput(self, "Destroy", description="Removes everything except retained resources", value=destroy)
