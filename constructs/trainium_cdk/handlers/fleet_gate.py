"""Custom::TrnFleetGate: holds the deployment until every node of an Auto Scaling group has proved itself.

One invocation lasts 15 minutes at most, so the function calls itself again while there is still something to wait for.
"""

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from trainium_core.fleet_verdict import FleetVerdict, fleet_verdict
from trainium_core.node_record import NodeRecord

from .custom_resource import answer

_LONGEST_PAUSE_S = 15.0
_MARGIN_S = 60.0
_SETTLING = timedelta(minutes=5)  # how long before this resource's update the group itself may have been updated


def handle(event: dict[str, Any], context: Any) -> None:
    properties = event["ResourceProperties"]
    physical_id = f"{properties['GroupName']}/gate"
    if event["RequestType"] == "Delete":
        answer(event, physical_id=event["PhysicalResourceId"])
        return
    started = float(event.setdefault("GateStarted", time.time()))
    deadline = started + 60 * float(properties["TimeoutMinutes"])
    try:
        verdict = wait(
            properties,
            since=datetime.fromtimestamp(started, UTC) - _SETTLING if event["RequestType"] == "Update" else None,
            until=min(deadline, time.time() + context.get_remaining_time_in_millis() / 1000 - _MARGIN_S),
        )
    except Exception as error:  # CloudFormation must hear of it, whatever it is
        answer(event, failure=f"the fleet could not be watched: {error}", physical_id=physical_id)
        return
    if verdict.state == "waiting" and time.time() < deadline:
        _call_again(event, context)
    elif verdict.state == "ready":
        answer(event, physical_id=physical_id, data={"Summary": verdict.reason})
    else:
        late = f"after {properties['TimeoutMinutes']} minutes: " if verdict.state == "waiting" else ""
        answer(event, failure=late + verdict.reason, physical_id=physical_id)


def wait(properties: dict[str, Any], *, since: datetime | None, until: float) -> FleetVerdict:
    """Watch until the fleet is ready or has failed, or until the time `until` (seconds since the epoch)."""
    pause = 0.5
    records: dict[str, NodeRecord] = {}
    while True:
        verdict = look(properties, since, records)
        print(f"{verdict.state}: {verdict.reason}")
        if verdict.state != "waiting" or time.time() + pause > until:
            return verdict
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def look(properties: dict[str, Any], since: datetime | None, records: dict[str, NodeRecord]) -> FleetVerdict:
    """Ask Auto Scaling and S3 once. `since`: older failed launches are of an earlier deployment.

    `records` holds what was read before, and gains what is new.
    """
    import boto3

    autoscaling: Any = boto3.client("autoscaling")
    name = properties["GroupName"]
    group = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"][0]
    instances = [i["InstanceId"] for i in group["Instances"] if not i["LifecycleState"].startswith("Terminat")]
    activities = autoscaling.describe_scaling_activities(AutoScalingGroupName=name)["Activities"]
    read_new_records(properties["RecordsBucket"], properties["RecordsPrefix"], instances, records)
    return fleet_verdict(
        nodes=int(properties["Nodes"]),
        instances=instances,
        records=records,
        failed_launches=[
            activity["StatusMessage"]
            for activity in activities
            if activity["StatusCode"] == "Failed" and (since is None or activity["StartTime"] >= since)
        ],
    )


def read_new_records(bucket: str, prefix: str, instances: list[str], records: dict[str, NodeRecord]) -> None:
    """Add to `records` what instances have written since."""
    import boto3

    s3: Any = boto3.client("s3")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
    written = {item["Key"] for page in pages for item in page.get("Contents", [])}
    for instance in instances:
        key = f"{prefix}/{instance}.json"
        if instance not in records and key in written:
            records[instance] = NodeRecord.from_json(s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode())


def _call_again(event: dict[str, Any], context: Any) -> None:
    import boto3

    client: Any = boto3.client("lambda")
    client.invoke(FunctionName=context.invoked_function_arn, InvocationType="Event", Payload=json.dumps(event).encode())
