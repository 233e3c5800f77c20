"""AWS clients with stubbed responses, and stacks and buckets in moto."""

import json
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.stub import Stubber

from trainium_core.preflight.aws_account import AwsAccount

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
