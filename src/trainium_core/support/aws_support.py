"""Reads the last events and scaling activities of a stack, and the ends of its logs and of its nodes' consoles."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from botocore.exceptions import ClientError

from trainium_core.nodes.aws_fleets import AwsFleets
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.errors import UnavailableError
from trainium_wire.keys import LOGS_PREFIX, key_instance
from trainium_wire.stack_record import StackRecord

_EVENTS, _ACTIVITIES, _LINES = 300, 50, 500
_STREAMS, _LOGS, _CONSOLES = 3, 20, 10
_LOG_BYTES = 100_000


class AwsSupport(AwsFleets):
    """Methods raise UnavailableError if a request fails or is denied."""

    def stack_history(self, stack: str) -> Sequence[Mapping[str, Any]]:
        """The last events of a stack, or else of the last deleted stack of this name, newest first."""
        if self.describe_stack(stack) is None:
            stack = next((stack_id for name, stack_id in self.deleted_stack_ids() if name == stack), stack)
        omitted = ("StackId", "EventId", "StackName", "ResourceProperties", "ClientRequestToken")
        newest = islice(self.newest_events(stack), _EVENTS)
        return [{key: value for key, value in event.items() if key not in omitted} for event in newest]

    def function_logs(self, stack: str) -> Mapping[str, str]:
        """The last events in the newest streams of each log group of a stack, or why they are missing, by file name."""
        resources = self.stack_resources(stack)
        groups = [each["PhysicalResourceId"] for each in resources if each["ResourceType"] == "AWS::Logs::LogGroup"]
        return {f"{group.strip('/').replace('/', '.')}.log": self._log(group) for group in groups}

    def node_logs(self, stack: str) -> Mapping[str, str]:
        """The ends of the newest logs that nodes stored, by file name."""
        bucket = self._fleet(stack).bucket
        client = self.client("s3")
        with read_errors(f"s3:ListBucket or s3:GetObject on the bucket {bucket}"):
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{LOGS_PREFIX}/")
            logs = [entry for page in pages for entry in page.get("Contents", [])]
            logs = [entry for entry in logs if entry["Size"] and key_instance(entry["Key"], LOGS_PREFIX)]
            newest = [entry["Key"] for entry in sorted(logs, key=lambda entry: entry["LastModified"])][-_LOGS:]
            ranged = {"Bucket": bucket, "Range": f"bytes=-{_LOG_BYTES}"}
            bodies = {key: client.get_object(Key=key, **ranged)["Body"].read() for key in newest}
            texts = {key: body.decode(errors="replace") for key, body in bodies.items()}
            return {f"{key_instance(key, LOGS_PREFIX)}.log": text for key, text in texts.items()}

    def scaling_activities(self, stack: str) -> Sequence[Mapping[str, Any]]:
        """The last activities of a stack's Auto Scaling group, newest first; empty without a group."""
        group = self._fleet(stack).group
        if group is None:  # a service starts the nodes
            return []
        with read_errors("autoscaling:DescribeScalingActivities"):
            described = self.client("autoscaling").describe_scaling_activities(AutoScalingGroupName=group)
            return described["Activities"][:_ACTIVITIES]

    def consoles(self, instance_ids: Sequence[str]) -> Mapping[str, str]:
        """The ends of the first instances' console output, or why they are not available, by file name."""
        return {f"{instance}.txt": self._console(instance) for instance in instance_ids[:_CONSOLES]}

    def _console(self, instance_id: str) -> str:
        client = self.client("ec2")
        try:
            with read_errors("ec2:GetConsoleOutput"):
                try:
                    answer = client.get_console_output(InstanceId=instance_id, Latest=True)
                except ClientError as error:
                    # Only Nitro instances return the latest output.
                    if error.response["Error"]["Code"] != "UnsupportedOperation":
                        raise
                    answer = client.get_console_output(InstanceId=instance_id)
                return str(answer.get("Output") or "")[-_LOG_BYTES:] or "the console is empty"
        except UnavailableError as error:
            return f"not available: {error}"

    def _log(self, group: str) -> str:
        client = self.client("logs")
        try:
            with read_errors("logs:DescribeLogStreams or logs:GetLogEvents"):
                described = client.describe_log_streams(
                    logGroupName=group, orderBy="LastEventTime", descending=True, limit=_STREAMS
                )
                streams = [stream["logStreamName"] for stream in described["logStreams"]]
                events_by_stream = [
                    client.get_log_events(logGroupName=group, logStreamName=stream, limit=_LINES)["events"]
                    for stream in streams
                ]
                events = sorted(
                    (event for some in events_by_stream for event in some), key=lambda event: event["timestamp"]
                )
                return "\n".join(f"{event['timestamp']} {event['message'].rstrip()}" for event in events)
        except UnavailableError as error:
            return f"not available: {error}"

    def _fleet(self, stack: str) -> StackRecord:
        fleet = self.fleet_record(stack)
        if fleet is None:
            raise UnavailableError(f"the stack {stack} does not exist")
        return fleet
