"""The signals of instances, on which nothing runs: a stand-in sends those that their user data would have sent."""

import re
from base64 import b64decode

from botocore.exceptions import ClientError

from trainium_local.cloudformation import signals
from trainium_local.cloudformation.stack import Stack, StackResource
from trainium_local.resources import api, callbacks
from trainium_local.stand_ins.user_data import texts

_NOTE = "Sent by a stand-in of the embedded AWS: nothing runs on the instance."


def created(stack: Stack, resource: StackResource) -> None:
    """Signal SUCCESS for the instances of a resource to its CreationPolicy, and to wait conditions."""
    awaited = signals.policy(resource.definition) is not None
    for instance_id in _instances(resource, stack.region) if awaited or callbacks.expected() else ():
        user_data = "\n".join(texts(_user_data(instance_id, stack.region)))
        if "cfn-signal" in user_data and awaited:
            signals.receive(stack, resource.logical_id, instance_id, "SUCCESS", _NOTE)
        for url in re.findall(re.escape(f"{api.endpoint()}{callbacks.PATH}/") + "[0-9a-f]{32}", user_data):
            callbacks.deliver(url, {"Status": "SUCCESS", "UniqueId": instance_id, "Reason": _NOTE})


def _instances(resource: StackResource, region: str) -> list[str]:
    if resource.resource_type == "AWS::EC2::Instance":
        return [resource.physical_id]
    if resource.resource_type != "AWS::AutoScaling::AutoScalingGroup":
        return []
    names = {"AutoScalingGroupNames": [resource.physical_id]}
    groups = api.call("autoscaling", "DescribeAutoScalingGroups", region, names)["AutoScalingGroups"]
    return [instance["InstanceId"] for group in groups for instance in group["Instances"]]


def _user_data(instance_id: str, region: str) -> bytes:
    wanted = {"InstanceId": instance_id, "Attribute": "userData"}
    try:
        return b64decode(api.call("ec2", "DescribeInstanceAttribute", region, wanted)["UserData"].get("Value", ""))
    except ClientError:  # only a record of the instance is kept
        return b""
