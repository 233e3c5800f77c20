"""Runs of a pilot's clock against moto's Auto Scaling, EC2, S3 and SNS, and their effects."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.runtime.handlers.conftest import REGION
from tests.runtime.handlers.fleet import GROUP, NOON, RECONCILER_ARN, Fleet, client
from tests.runtime.handlers.pilot import STACK_ID, Reconciler, Stack
from trainium_runtime.handlers.pilot_clock import Clock

SCHEDULE = {"kind": "schedule"}
Run = Callable[..., Any]


def new_queue() -> str:
    return client("sqs").create_queue(QueueName="notices")["QueueUrl"]


def new_topic() -> str:
    """A topic whose messages arrive in the queue."""
    sns = client("sns")
    arn: str = sns.create_topic(Name="notices")["TopicArn"]
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=f"arn:aws:sqs:{REGION}:123456789012:notices")
    return arn


def messages(queue: str) -> list[dict[str, str]]:
    found = client("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
    return [json.loads(message["Body"]) for message in found]


def runs(stack: Stack, topic: str, reconciler: Reconciler) -> Run:
    """A function that runs the clock, at a number of hours after noon.

    Its keyword arguments are settings of the clock (None removes one), and `clients`, which replace moto's.
    """
    Fleet(nodes=2, region=REGION)
    client("autoscaling").update_auto_scaling_group(AutoScalingGroupName=GROUP, MinSize=0, MaxSize=2)

    def call(
        hours: float, event: dict[str, Any] = SCHEDULE, *, clients: dict[str, Any] | None = None, **own: str | None
    ) -> Any:
        settings = {
            "RECONCILER": RECONCILER_ARN,
            "GROUP": GROUP,
            "STACK_ID": STACK_ID,
            "TOPIC": topic,
            "CLUSTER": "trn-pilot",
            "NODES": "2",
            "ASLEEP": "false",
            "WARNING_HOURS": "24",
            "ENDS_ACTION": "sleep",
            **own,
        }
        of_moto = {name: client(name) for name in ("autoscaling", "ec2", "s3", "sns")}
        environment = {name: value for name, value in settings.items() if value is not None}
        clock = Clock(environment, cloudformation=stack, functions=reconciler, **{**of_moto, **(clients or {})})
        return clock.reconcile(event, now=NOON + timedelta(hours=hours))

    return call


def group() -> dict[str, Any]:
    (found,) = client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])["AutoScalingGroups"]
    return found


def tags() -> dict[str, str]:
    sns = client("sns")
    found = sns.list_tags_for_resource(ResourceArn=sns.list_topics()["Topics"][0]["TopicArn"])["Tags"]
    return {tag["Key"]: tag["Value"] for tag in found}


def desired() -> int:
    return group()["DesiredCapacity"]
