"""Permissions of functions on an Auto Scaling group, and its ARN in policies."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Stack
from constructs import IConstruct

from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify_wildcard
from trainium_runtime.naming import CLUSTER_TAG


def group_arn(scope: IConstruct, name: str) -> str:
    """The ARN of an Auto Scaling group, with a wildcard for the ID that Auto Scaling assigns."""
    stack = Stack.of(scope)
    return (
        f"arn:{stack.partition}:autoscaling:{stack.region}:{stack.account}:"
        f"autoScalingGroup:*:autoScalingGroupName/{name}"
    )


def allow_resizing(function: HandlerFunction, *, group_name: str, cluster_name: str) -> None:
    """Allow a function to set the size of a cluster's group, from 0 to its maximum."""
    of_cluster = {"StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": cluster_name}}
    allow_on_group(function, "autoscaling:SetDesiredCapacity", group_name=group_name, conditions=of_cluster)


def allow_on_group(
    function: HandlerFunction, action: str, *, group_name: str, conditions: Mapping[str, Any] | None = None
) -> None:
    """Allow a function to perform an action on an Auto Scaling group."""
    group = group_arn(function, group_name)
    function.allow(actions=[action], resources=[group], conditions=conditions)
    justify_wildcard(function, group, "one group by its name; the rest of its ARN is unknown before it exists")
