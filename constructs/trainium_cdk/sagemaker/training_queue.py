"""The queue of training jobs in AWS Batch."""

from aws_cdk import aws_batch as batch
from constructs import Construct

_TYPE = "SAGEMAKER_TRAINING"
_SHARE_DECAY_SECONDS = 24 * 3600
"""How long the use of instances counts in a fair share: jobs run for hours. AWS's default is 10 minutes."""


class TrainingQueue(Construct):
    """A job queue whose jobs AWS Batch submits to SageMaker, as long as their instances do not exceed a maximum.

    Jobs of different share identifiers get equal shares; within a share, jobs with a higher priority start first.
    `arn` is the ARN of the queue. `queue` and `environment` are the CDK objects.
    """

    arn: str
    environment: batch.CfnServiceEnvironment
    queue: batch.CfnJobQueue

    def __init__(self, scope: Construct, construct_id: str, *, max_instances: int) -> None:
        """
        Args:
            max_instances: Maximum number of instances that the jobs use at the same time.
        """
        super().__init__(scope, construct_id)
        self.environment = batch.CfnServiceEnvironment(
            self,
            "Environment",
            service_environment_type=_TYPE,
            capacity_limits=[
                batch.CfnServiceEnvironment.CapacityLimitProperty(
                    capacity_unit="NUM_INSTANCES", max_capacity=max_instances
                )
            ],
        )
        policy = batch.CfnSchedulingPolicy(
            self,
            "Policy",
            fairshare_policy=batch.CfnSchedulingPolicy.FairsharePolicyProperty(
                share_decay_seconds=_SHARE_DECAY_SECONDS
            ),
        )
        self.queue = batch.CfnJobQueue(
            self,
            "Queue",
            job_queue_type=_TYPE,
            priority=1,
            scheduling_policy_arn=policy.attr_arn,
            service_environment_order=[
                batch.CfnJobQueue.ServiceEnvironmentOrderProperty(
                    order=1, service_environment=self.environment.attr_service_environment_arn
                )
            ],
        )
        self.arn = self.queue.attr_job_queue_arn
