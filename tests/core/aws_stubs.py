"""AWS clients with stubbed responses, and stacks, their records and buckets in moto."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import boto3
from botocore.stub import Stubber

from trainium_core.aws.account import AwsAccount
from trainium_wire.stack_record import StackRecord

IMAGE_MANIFEST = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "size": 2, "digest": "sha256:0"},
        "layers": [],
    }
)
REGION = "us-west-2"


def stubbed(service: str) -> tuple[AwsAccount, Stubber]:
    """An account whose responses from one service are stubbed and validated by botocore's model of the service."""
    account = AwsAccount(REGION)
    stub = Stubber(account.client(service))
    stub.activate()
    return account, stub


def client(service: str) -> Any:
    """boto3's client, which moto answers."""
    return boto3.client(service, REGION)


def create_bucket(name: str) -> None:
    client("s3").create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})


def install_queues() -> None:
    """Let moto have job queues for training jobs. Call it before `mock_aws`."""
    from trainium_local.services import batch_jobs  # late: importing moto's SageMaker takes seconds

    batch_jobs.install()


def create_queue(
    name: str = "trn-queue", *, max_instances: int = 8, policy: bool = True, cluster: str = "trn-pilot"
) -> str:
    """Create a job queue for training jobs in moto, and return its ARN."""
    batch, tags = client("batch"), {"trn:cluster": cluster}
    limits = [{"capacityUnit": "NUM_INSTANCES", "maxCapacity": max_instances}]
    environment = batch.create_service_environment(
        serviceEnvironmentName=name, serviceEnvironmentType="SAGEMAKER_TRAINING", capacityLimits=limits, tags=tags
    )
    order = [{"order": 1, "serviceEnvironment": environment["serviceEnvironmentArn"]}]
    arguments: dict[str, Any] = {"jobQueueName": name, "priority": 1, "serviceEnvironmentOrder": order, "tags": tags}
    if policy:
        made = batch.create_scheduling_policy(name=name, fairsharePolicy={"shareDecaySeconds": 0})
        arguments["schedulingPolicyArn"] = made["arn"]
    return batch.create_job_queue(**arguments, jobQueueType="SAGEMAKER_TRAINING")["jobQueueArn"]


def submit_job(queue: str, name: str, *, instances: int, aws: Callable[[str], Any] = client) -> None:
    """Submit a training job to a queue with a scheduling policy. It waits if the queue allows fewer instances."""
    request = {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::123456789012:role/execution",
        "AlgorithmSpecification": {"TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": "s3://trn-bucket/output"},
        "ResourceConfig": {"InstanceCount": instances, "InstanceType": "ml.trn1.32xlarge", "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 60},
    }
    aws("batch").submit_service_job(
        jobName=name,
        jobQueue=queue,
        serviceJobType="SAGEMAKER_TRAINING",
        serviceRequestPayload=json.dumps(request),
        shareIdentifier="x",
    )


def create_stack(name: str, outputs: Mapping[str, str], **resources: Mapping[str, Any]) -> None:
    """Create a stack in moto.

    Args:
        name: Name of the stack.
        outputs: Values of the outputs by name.
        resources: Resources of the template by logical ID. Default: a topic.
    """
    resources = resources or {"Topic": {"Type": "AWS::SNS::Topic"}}
    values = {key: {"Value": value} for key, value in outputs.items()}
    client("cloudformation").create_stack(
        StackName=name, TemplateBody=json.dumps({"Resources": resources, "Outputs": values})
    )


def stack_record(stack: str = "TrnClusterStack", **more: Any) -> StackRecord:
    """The record of a stack with two nodes in the Auto Scaling group `group`, unless other values are given."""
    values: dict[str, Any] = {
        "cluster": "trn-pilot",
        "engine": "cluster",
        "construct": "0a1b2c3d",
        "bucket": "records",
        "cache_url": "s3://cache/neuron-compile-cache",
        "settings": {"instance_type": "trn1.32xlarge", "nodes": 2},
        "group": "group",
    }
    return StackRecord(stack=stack, **{**values, **more})


def put_record(record: StackRecord) -> None:
    client("ssm").put_parameter(Name=record.name, Value=json.dumps(record.value), Type="String")
