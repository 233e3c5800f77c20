"""A fleet for the controller: an Auto Scaling group in moto, and a clock that the test controls."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from typing import Any

import boto3
from botocore.validate import ParamValidator

from trainium_wire.keys import MEMBERSHIP_KEY
from trainium_wire.membership import Membership
from trainium_wire.node_record import CheckRecord, NodeRecord

BUCKET, PREFIX, GROUP = "records", "nodes", "fleet"
FUNCTION_ARN = "arn:aws:lambda:us-west-2:123456789012:function:controller"
DELETION_ARN = "arn:aws:lambda:us-west-2:123456789012:function:deletion"
STACK_ID = "arn:aws:cloudformation:us-west-2:123456789012:stack/TrnClusterStack/0"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@cache
def client(service: str) -> Any:
    """A shared client: creating one takes longer than any of these tests."""
    return _new_client(service)


_new_client: Any = boto3.client  # Tests replace the name in boto3.


class Fleet:
    """An Auto Scaling group whose instances all run, and the bucket of their records."""

    def __init__(self, nodes: int, region: str) -> None:
        self._s3 = client("s3")
        self._autoscaling = client("autoscaling")
        self._s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": region})
        ec2 = client("ec2")
        data = {"ImageId": "ami-0123456789abcdef0"}
        template = ec2.create_launch_template(LaunchTemplateName="node", LaunchTemplateData=data)["LaunchTemplate"]
        self.subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
        self.template = template["LaunchTemplateId"]
        self.version = "1"
        """The launch template version that the group launches now."""
        self.versions: dict[str, str] = {}
        """The launch template version of each instance, by instance ID."""
        self._autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=GROUP,
            LaunchTemplate={"LaunchTemplateId": self.template, "Version": "1"},
            MinSize=0,
            MaxSize=nodes,
            DesiredCapacity=nodes,
            VPCZoneIdentifier=self.subnet,
        )
        self.activities: list[dict[str, Any]] = []
        """The scaling activities of the group, newest first; moto has none."""
        self.sizes: list[int] = []
        """The sizes that the group was set to."""
        self.room = nodes
        """The number of instances for which EC2 has capacity."""

    @property
    def instances(self) -> list[str]:
        (group,) = self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])["AutoScalingGroups"]
        return [instance["InstanceId"] for instance in group["Instances"]]

    def describe(self, **parameters: Any) -> dict[str, Any]:
        """The group with the versions that its instances were launched from: moto shows the template's default one."""
        described = self._autoscaling.describe_auto_scaling_groups(**parameters)
        for group in described["AutoScalingGroups"]:
            group["LaunchTemplate"]["Version"] = self.version
            for instance in group["Instances"]:
                version = self.versions.setdefault(instance["InstanceId"], self.version)
                instance["LaunchTemplate"]["Version"] = version
        return described

    def resize(self, **parameters: Any) -> None:
        self.sizes.append(parameters["DesiredCapacity"])
        if parameters["DesiredCapacity"] <= self.room:
            self._autoscaling.set_desired_capacity(**parameters)

    def write(self, instance_id: str, text: str) -> None:
        self._s3.put_object(Bucket=BUCKET, Key=f"{PREFIX}/{instance_id}.json", Body=text.encode())

    def address(self, instance_id: str) -> str:
        (found,) = client("ec2").describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"]
        return found["PrivateIpAddress"]

    def verify(self, *instance_ids: str, connected: bool = True) -> None:
        """Write records of verified instances.

        Args:
            connected: Whether the membership of the group is written too, and each record says that the instance has
                reached all of its members.
        """
        membership = Membership.of({instance: self.address(instance) for instance in self.instances})
        if connected:
            self._s3.put_object(Bucket=BUCKET, Key=MEMBERSHIP_KEY, Body=membership.to_json().encode())
        for instance_id in instance_ids:
            record = NodeRecord(
                instance_id=instance_id,
                state="verified",
                checks=(CheckRecord(name="devices", expected="16", found="16", ok=True),),
                membership=membership.version if connected else "",
                time="2026-11-21T12:00:00Z",
            )
            self.write(instance_id, record.to_json())

    def connect(self) -> None:
        """Have verified nodes reach the members of the membership that the controller wrote."""
        text = self._s3.get_object(Bucket=BUCKET, Key=MEMBERSHIP_KEY)["Body"].read().decode()
        assert Membership.from_json(text).instance_ids == set(self.instances)
        self.verify(*self.instances)

    @property
    def unhealthy(self) -> set[str]:
        (group,) = self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])["AutoScalingGroups"]
        return {i["InstanceId"] for i in group["Instances"] if i["HealthStatus"] == "Unhealthy"}

    def replace(self, instance_id: str) -> None:
        """Replace an instance, as Auto Scaling does with unhealthy ones and moto does not."""
        self._autoscaling.terminate_instance_in_auto_scaling_group(
            InstanceId=instance_id, ShouldDecrementDesiredCapacity=False
        )

    def fail(self, instance_id: str, reason: str) -> None:
        record = NodeRecord(instance_id=instance_id, state="failed", reason=reason, time="2026-11-21T12:00:00Z")
        self.write(instance_id, record.to_json())

    def add_launch(self, status: str, message: str = "", *, at: datetime = NOON) -> None:
        activity = {"Description": "Launching a new EC2 instance", "StatusCode": status, "StartTime": at}
        self.activities.insert(0, activity | ({"StatusMessage": message} if message else {}))

    def add_termination(self, *, at: datetime = NOON) -> None:
        termination = {"Description": "Terminating EC2 instance: i-1", "StatusCode": "Successful"}
        self.activities.insert(0, termination | {"StartTime": at, "EndTime": at})


@dataclass
class Clock:
    """A clock that advances only in `sleep`, after which it calls `when_asleep`."""

    now: float = field(default_factory=NOON.timestamp)
    when_asleep: Callable[[], None] = lambda: None

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.when_asleep()


@dataclass
class Context:
    """Lambda's context of one invocation of 15 minutes."""

    clock: Clock
    invoked_function_arn: str = FUNCTION_ARN
    aws_request_id: str = "request-1"

    def __post_init__(self) -> None:
        self._end = self.clock.now + 15 * 60

    def get_remaining_time_in_millis(self) -> float:
        return 1000 * (self._end - self.clock.now)


@dataclass
class Lambda:
    """Lambda as the controller uses it: records its calls, which botocore's own model validates."""

    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The events with which the function invoked itself."""
    refusal: Exception | None = None
    deletions: int = 0
    """The number of accepted requests to delete the stack."""
    deletion_error: str = ""
    """Why the stack is not deleted; empty if it is."""

    def invoke(self, **arguments: Any) -> Any:
        shape = client("lambda").meta.service_model.operation_model("Invoke").input_shape
        problems = ParamValidator().validate(arguments, shape)
        assert not problems.has_errors(), problems.generate_report()
        if arguments["FunctionName"] == DELETION_ARN:
            if self.deletion_error:
                output = json.dumps({"errorMessage": self.deletion_error}).encode()
                return {"FunctionError": "Unhandled", "Payload": BytesIO(output)}
            self.deletions += 1
            return {"Payload": BytesIO(b"null")}
        assert (arguments["FunctionName"], arguments["InvocationType"]) == (FUNCTION_ARN, "Event")
        if self.refusal:
            raise self.refusal
        self.events.append(json.loads(arguments["Payload"]))
        return None


@dataclass
class Stack:
    """CloudFormation as the controller uses it: with the stack of the cluster, deployed at noon."""

    status: str = "CREATE_COMPLETE"

    def describe_stacks(self, **parameters: str) -> Any:
        assert parameters == {"StackName": STACK_ID}
        return {"Stacks": [{"CreationTime": NOON, "StackStatus": self.status, "StackStatusReason": "[Topic]"}]}


def desired() -> int:
    (group,) = client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])["AutoScalingGroups"]
    return group["DesiredCapacity"]


def set_size(nodes: int) -> None:
    client("autoscaling").set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=nodes)


def topic_tags() -> dict[str, str]:
    sns = client("sns")
    found = sns.list_tags_for_resource(ResourceArn=sns.list_topics()["Topics"][0]["TopicArn"])["Tags"]
    return {tag["Key"]: tag["Value"] for tag in found}
