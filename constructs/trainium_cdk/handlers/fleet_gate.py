"""Custom::TrnFleetGate: holds the deployment until every node of an Auto Scaling group has proved itself.

One invocation lasts 15 minutes at most, so the function calls itself again while there is still something to wait for.
"""

import json
import time
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any

from trainium_core.fleet_verdict import FleetVerdict, fleet_verdict
from trainium_core.node_record import NodeRecord

from .custom_resource import answer

_LONGEST_PAUSE_S = 15.0
_MARGIN_S = 60.0
_REFUSALS_IN_A_ROW = 8  # about a minute: new permissions take a while to be known everywhere
_SETTLING = timedelta(minutes=5)  # how long before this resource's update the group itself may have been updated


def handle(event: dict[str, Any], context: Any) -> None:
    if event["RequestType"] == "Delete":
        answer(event, physical_id=event["PhysicalResourceId"])
        return
    physical_id = f"{event['ResourceProperties']['GroupName']}/gate"
    try:
        verdict = decide(event, context)
    except Exception as error:  # CloudFormation must hear of it, whatever it is
        answer(event, failure=f"the fleet could not be watched: {error}", physical_id=physical_id)
        return
    if verdict.state == "ready":
        answer(event, physical_id=physical_id, data={"Summary": verdict.reason})
    elif verdict.state == "failed":
        answer(event, failure=verdict.reason, physical_id=physical_id)


def decide(event: dict[str, Any], context: Any) -> FleetVerdict:
    """Watch as long as this invocation may. The verdict is `waiting` when another invocation goes on watching."""
    properties = event["ResourceProperties"]
    started = float(event.setdefault("GateStarted", time.time()))
    deadline = started + 60 * float(properties["TimeoutMinutes"])
    end_of_invocation = time.time() + context.get_remaining_time_in_millis() / 1000 - _MARGIN_S
    verdict = wait(
        properties,
        since=datetime.fromtimestamp(started, UTC) - _SETTLING if event["RequestType"] == "Update" else None,
        until=min(deadline, end_of_invocation),
    )
    if verdict.state != "waiting":
        return verdict
    if end_of_invocation < deadline:
        _call_again(event, context)
        return verdict
    return FleetVerdict(state="failed", reason=f"after {properties['TimeoutMinutes']} minutes: {verdict.reason}")


def wait(properties: dict[str, Any], *, since: datetime | None, until: float) -> FleetVerdict:
    """Watch until the fleet is ready or has failed, or until the time `until` (seconds since the epoch).

    since: launches that failed before are of an earlier deployment.
    """
    import boto3
    from botocore.exceptions import ClientError

    autoscaling: Any = boto3.client("autoscaling")
    s3: Any = boto3.client("s3")
    pause, refusals = 0.5, 0
    records: dict[str, NodeRecord] = {}
    while True:
        try:
            instances, activities = look_at_group(autoscaling, properties["GroupName"])
            read_new_records(s3, properties["RecordsBucket"], properties["RecordsPrefix"], instances, records)
            verdict = fleet_verdict(
                nodes=int(properties["Nodes"]),
                instances=instances,
                records=records,
                failed_launches=failed_launches(activities, since),
            )
            refusals = 0
        except ClientError as error:
            refusals += 1
            if refusals > _REFUSALS_IN_A_ROW:
                raise
            verdict = FleetVerdict(state="waiting", reason=f"AWS did not answer: {error}")
        print(f"{verdict.state}: {verdict.reason}")
        if verdict.state != "waiting" or time.time() + pause > until:
            return verdict
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def look_at_group(autoscaling: Any, name: str) -> tuple[list[str], list[dict[str, Any]]]:
    """The ids of a group's instances that are to stay, and its latest activities, newest first."""
    group = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"][0]
    instances = [i["InstanceId"] for i in group["Instances"] if not i["LifecycleState"].startswith("Terminat")]
    return instances, autoscaling.describe_scaling_activities(AutoScalingGroupName=name)["Activities"]


def failed_launches(activities: list[dict[str, Any]], since: datetime | None) -> list[str]:
    """What the launches that failed since the last one that did not say, newest first, as the activities are.

    Once a launch goes well again, such as after a rollback, those that failed before tell nothing any more.
    """
    launches = [activity for activity in activities if activity["Description"].startswith("Launching")]
    failed = takewhile(lambda launch: launch["StatusCode"] == "Failed", launches)
    return [launch["StatusMessage"] for launch in failed if since is None or launch["StartTime"] >= since]


def read_new_records(s3: Any, bucket: str, prefix: str, instances: list[str], records: dict[str, NodeRecord]) -> None:
    """Add to `records` what instances have written since."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
    written = {item["Key"] for page in pages for item in page.get("Contents", [])}
    for instance in instances:
        key = f"{prefix}/{instance}.json"
        if instance not in records and key in written:
            text = s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
            try:
                records[instance] = NodeRecord.from_json(text)
            except ValueError as error:
                raise ValueError(f"node {instance}: {error}") from error


def _call_again(event: dict[str, Any], context: Any) -> None:
    import boto3

    client: Any = boto3.client("lambda")
    client.invoke(FunctionName=context.invoked_function_arn, InvocationType="Event", Payload=json.dumps(event).encode())
