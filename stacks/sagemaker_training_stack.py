"""SageMakerTrainingStack: what training jobs need, with what a person and `trn run` use next as outputs."""

from collections.abc import Iterator

from aws_cdk import CfnOutput, Environment, Stack
from constructs import Construct

from trainium_cdk.fleet.cluster_names import tag_all
from trainium_cdk.sagemaker.sagemaker_training import PlannedTraining
from trainium_core import Plan
from trainium_core.naming import stack_name
from trainium_core.nodes.next_steps import destroy_command


class SageMakerTrainingStack(Stack):
    """The training option of a plan, in the plan's region and the account of the deploying credentials."""

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
        key = plan.sagemaker.kms_key
        if key is not None:
            CfnOutput(self, "KmsKeyArn", description="Key that a job's files are encrypted with", value=key)
        for name, meaning, value in _outputs(training, destroy_command(construct_id, plan.cluster_name)):
            CfnOutput(self, name, description=meaning, value=value)


def _outputs(training: PlannedTraining, destroy: str) -> Iterator[tuple[str, str, str]]:
    yield "RoleArn", "Role that training jobs run with", training.execution.role.role_arn
    yield "SourceUrl", "Where the source of a job is uploaded to", training.store.source_url
    yield "OutputUrl", "Where a job leaves its model", training.store.output_url
    yield "CheckpointUrl", "Where a job keeps its checkpoints", training.store.checkpoint_url
    yield "CacheUrl", "Where compiled graphs are kept", training.cache.url
    if training.subnet is not None and training.security_group is not None:
        yield "SubnetIds", "Subnet of the jobs", training.subnet.subnet_id
        yield "SecurityGroupIds", "Security group of the jobs", training.security_group.security_group_id
    yield "ImageUri", "Container image for PyTorch on Neuron", training.image_uri
    yield "StateMachineArn", "Runs a job, waits for capacity and stops it at the budget", training.state_machine.arn
    yield "TopicArn", "Told of failed jobs and of the end of each run", training.alerts.topic.topic_arn
    yield "Destroy", "Removes everything but what is retained", destroy
