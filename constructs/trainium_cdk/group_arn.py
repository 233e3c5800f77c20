"""The ARN of an Auto Scaling group, as policies name it."""

from aws_cdk import Stack
from constructs import Construct


def group_arn(scope: Construct, name: str) -> str:
    """With a wildcard where the ARN has an id that Auto Scaling makes up."""
    stack = Stack.of(scope)
    return (
        f"arn:{stack.partition}:autoscaling:{stack.region}:{stack.account}:"
        f"autoScalingGroup:*:autoScalingGroupName/{name}"
    )
