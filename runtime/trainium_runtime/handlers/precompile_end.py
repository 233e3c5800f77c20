"""Ends the host that compiles ahead when it says that it is over, or could not begin.

Called for every report of such a host. Only one that is in the group now ends it: a late or second report of an earlier
host does not end the next.
"""

import json
import os
from pathlib import PurePosixPath
from typing import Any

from trainium_runtime.node_store import describe_group


def handle(event: dict[str, Any], context: object) -> None:  # noqa: ARG001
    """Raises what Auto Scaling refuses; Lambda tries twice more, and the host reports again."""
    import boto3

    end_host(event, boto3.client("autoscaling"), os.environ["GROUP"])


def end_host(event: dict[str, Any], autoscaling: Any, group: str) -> bool:
    """Whether the group was told to have no instance."""
    instance = PurePosixPath(event["detail"]["object"]["key"]).stem
    if instance not in describe_group(autoscaling, group).instances:
        print(json.dumps({"ignored": instance, "why": "not in the group"}))
        return False
    autoscaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=0, HonorCooldown=False)
    print(json.dumps({"ended": instance}))
    return True
