"""Services emit events to EventBridge, and rules invoke functions. Unhealthy instances are replaced."""

import io
import json
import time
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from tests.local.code_entry import readable
from tests.local.conftest import EmbeddedAws
from tests.local.ec2_network import Network
from tests.local.stacks import Stacks

KEEP = """
import json, boto3, os
def handler(event, context):
    boto3.client("s3").put_object(Bucket=os.environ["SEEN"], Key=context.aws_request_id, Body=json.dumps(event))
"""
SOON_S = 60
A_WHILE_S = 1.5


class Listener:
    """A function that keeps every event that it receives, and rules that call it."""

    def __init__(self, aws: EmbeddedAws, name: str) -> None:
        self._s3, self._events, self._seen, self._name = aws.client("s3"), aws.client("events"), f"seen-{name}", name
        self._s3.create_bucket(Bucket=self._seen, CreateBucketConfiguration={"LocationConstraint": aws.region})
        iam = aws.client("iam")
        if not any(role["RoleName"] == "lambda" for role in iam.list_roles()["Roles"]):
            iam.create_role(RoleName="lambda", AssumeRolePolicyDocument="{}")
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as archive:
            archive.writestr(readable("index.py"), KEEP)
        made = aws.client("lambda").create_function(
            FunctionName=name,
            Role="arn:aws:iam::123456789012:role/lambda",
            Runtime="python3.14",
            Handler="index.handler",
            Code={"ZipFile": code.getvalue()},
            Environment={"Variables": {"SEEN": self._seen}},
        )
        self.arn = made["FunctionArn"]

    def listen(self, state: str = "ENABLED", bus: str = "default", **rule: Any) -> None:
        if "EventPattern" in rule:
            rule["EventPattern"] = json.dumps(rule["EventPattern"])
        self._events.put_rule(Name=self._name, State=state, EventBusName=bus, **rule)
        self._events.put_targets(Rule=self._name, EventBusName=bus, Targets=[{"Id": "1", "Arn": self.arn}])

    def received(self, number: int = 1) -> list[dict[str, Any]]:
        """Wait for this number of events and return them. 0: wait for any event, but only A_WHILE_S."""
        deadline = time.monotonic() + (SOON_S if number else A_WHILE_S)
        while len(events := self._read()) < (number or 1) and time.monotonic() < deadline:
            time.sleep(0.05)
        return events

    def _read(self) -> list[dict[str, Any]]:
        keys = [item["Key"] for item in self._s3.list_objects_v2(Bucket=self._seen).get("Contents", [])]
        return [json.loads(self._s3.get_object(Bucket=self._seen, Key=key)["Body"].read()) for key in keys]


@pytest.fixture
def listener(embedded_aws: EmbeddedAws, name: str) -> Listener:
    return Listener(embedded_aws, name)


def bucket(aws: EmbeddedAws, name: str, *, publishes: bool = True) -> str:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": aws.region})
    if publishes:
        configuration: dict[str, Any] = {"EventBridgeConfiguration": {}}
        s3.put_bucket_notification_configuration(Bucket=name, NotificationConfiguration=configuration)
    return name


def objects_under(bucket_name: str, prefix: str) -> dict[str, Any]:
    return {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": {"bucket": {"name": [bucket_name]}, "object": {"key": [{"prefix": prefix}]}},
    }


def test_object_in_bucket_with_event_bridge_calls_the_function(
    embedded_aws: EmbeddedAws, listener: Listener, name: str
) -> None:
    configuration = {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    properties = {"BucketName": name, "NotificationConfiguration": configuration}
    Stacks(embedded_aws).deploy({"Resources": {"B": {"Type": "AWS::S3::Bucket", "Properties": properties}}})
    listener.listen(EventPattern=objects_under(name, "nodes/"))
    embedded_aws.client("s3").put_object(Bucket=name, Key="nodes/i-1.json", Body=b"{}")
    (event,) = listener.received()
    assert (event["source"], event["detail-type"]) == ("aws.s3", "Object Created")
    assert event["detail"]["bucket"] == {"name": name}
    assert event["detail"]["object"] == {"key": "nodes/i-1.json", "size": 2, "etag": "99914b932bd37a50b983c5e7c90ae93b"}


@pytest.mark.parametrize(
    ("publishes", "key", "state"),
    [(False, "nodes/x", "ENABLED"), (True, "logs/x", "ENABLED"), (True, "nodes/x", "DISABLED")],
    ids=["bucket that publishes nothing", "other prefix", "rule that is off"],
)
def test_other_changes_do_not_call_the_function(
    embedded_aws: EmbeddedAws, listener: Listener, name: str, publishes: bool, key: str, state: str
) -> None:
    bucket(embedded_aws, name, publishes=publishes)
    listener.listen(EventPattern=objects_under(name, "nodes/"), state=state)
    embedded_aws.client("s3").put_object(Bucket=name, Key=key, Body=b"")
    assert listener.received(0) == []


def test_service_event_reaches_no_other_event_bus(embedded_aws: EmbeddedAws, listener: Listener, name: str) -> None:
    bucket(embedded_aws, name)
    embedded_aws.client("events").create_event_bus(Name=name)
    listener.listen(bus=name, EventPattern=objects_under(name, ""))
    embedded_aws.client("s3").put_object(Bucket=name, Key="x", Body=b"")
    assert listener.received(0) == []


def test_event_does_not_call_target_of_schedule_rule(embedded_aws: EmbeddedAws, listener: Listener, name: str) -> None:
    bucket(embedded_aws, name)
    listener.listen(ScheduleExpression="rate(1 day)")
    embedded_aws.client("s3").put_object(Bucket=name, Key="x", Body=b"")
    assert listener.received(0) == []


def test_terminated_group_instance_is_reported(network: Network, listener: Listener, name: str) -> None:
    (state,) = network.create_group(name, network.template(name), nodes=1)["Instances"]
    listener.listen(
        EventPattern={
            "source": ["aws.autoscaling"],
            "detail-type": ["EC2 Instance Terminate Successful"],
            "detail": {"AutoScalingGroupName": [name]},
        }
    )
    network.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, DesiredCapacity=0)
    (event,) = listener.received()
    assert event["detail"]["EC2InstanceId"] == state["InstanceId"]


def until(holds: Callable[[], bool], seconds: float = SOON_S) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


def ids(network: Network, name: str) -> set[str]:
    return {state["InstanceId"] for state in network.group_named(name)["Instances"]}


def test_unhealthy_instance_is_replaced_unless_suspended(network: Network, name: str) -> None:
    (state,) = network.create_group(name, network.template(name), nodes=1)["Instances"]
    replacing = {"AutoScalingGroupName": name, "ScalingProcesses": ["ReplaceUnhealthy"]}
    network.autoscaling.suspend_processes(**replacing)
    network.autoscaling.set_instance_health(InstanceId=state["InstanceId"], HealthStatus="Unhealthy")
    assert network.group_named(name)["Instances"][0]["HealthStatus"] == "Unhealthy"
    assert not until(lambda: ids(network, name) != {state["InstanceId"]}, seconds=A_WHILE_S)
    network.autoscaling.resume_processes(**replacing)
    assert until(lambda: len(ids(network, name) - {state["InstanceId"]}) == 1)


def test_health_of_unknown_instance_cannot_be_set(network: Network) -> None:
    with pytest.raises(network.autoscaling.exceptions.ClientError, match="Instance Id not found"):
        network.autoscaling.set_instance_health(InstanceId="i-0123456789abcdef0", HealthStatus="Unhealthy")
