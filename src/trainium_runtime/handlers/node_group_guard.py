"""Stops a compute node group of AWS PCS from launching more nodes after too many of them failed.

Invoked for every node record of the cluster, and for every terminated instance of the account in the region. If the
node of the event failed, the function counts the failures in all records and instances of the group.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from trainium_runtime.log import log
from trainium_runtime.node_store import NodeStore
from trainium_runtime.recovery import WINDOW
from trainium_wire.node_record import StoredRecord, failures

GROUP_TAG = "aws:pcs:compute-node-group-id"
"""Tag that AWS PCS gives to the instances of a group."""

_GONE = ("shutting-down", "terminated")
_RECLAIMED = "Server.SpotInstanceTermination"
_LONGEST_SUBJECT = 100  # characters (SNS API reference, Publish)


def handle(event: dict[str, Any], context: object) -> None:  # noqa: ARG001
    import boto3

    settings = os.environ
    FailureLimit(
        settings,
        store=NodeStore(boto3.client("s3"), settings["RECORDS_BUCKET"], settings["RECORDS_PREFIX"]),
        ec2=boto3.client("ec2"),
        pcs=boto3.client("pcs"),
        sns=boto3.client("sns"),
    ).check(event, now=datetime.now(UTC))


class FailureLimit:
    """Compares the failures of a group with their limit.

    Args:
        settings: Environment variables from the construct.
    """

    def __init__(self, settings: Mapping[str, str], *, store: NodeStore, ec2: Any, pcs: Any, sns: Any) -> None:
        self._settings, self._store = settings, store
        self._ec2, self._pcs, self._sns = ec2, pcs, sns

    def check(self, event: Mapping[str, Any], *, now: datetime) -> None:
        """Lower the group's maximum to the number of its verified nodes if too many nodes failed within 24 hours.

        Does nothing if the node of the event has not failed. Draining nodes count as verified.
        """
        instances, records = self._instances(), self._store.records()
        failed = failed_nodes(instances, records)
        node = self._failed_node(event)
        if node not in failed:  # a verified node may be terminated at any time
            return
        recent = [name for name, at in failed.items() if at > now - WINDOW]
        limit = int(self._settings["FAILURES"])
        reason = records[node].record.reason if node in records else "it was terminated without a record"
        log(failed=node, reason=reason, failures=len(recent), limit=limit)
        if len(recent) <= limit:
            return
        verified = sum(_is_verified(name, instances, records) for name in instances)
        group = {
            "clusterIdentifier": self._settings["CLUSTER_ID"],
            "computeNodeGroupIdentifier": self._settings["GROUP_ID"],
        }
        bounds = self._pcs.get_compute_node_group(**group)["computeNodeGroup"]["scalingConfiguration"]
        if bounds["maxInstanceCount"] <= verified:
            return
        lower = {"minInstanceCount": min(bounds["minInstanceCount"], verified), "maxInstanceCount": verified}
        self._pcs.update_compute_node_group(**group, scalingConfiguration=lower)
        log(lowered_to=verified, before=bounds["maxInstanceCount"])
        self._notify(node, reason, len(recent), verified)

    def _notify(self, node: str, reason: str, recent: int, verified: int) -> None:
        settings = self._settings
        again = (
            f"aws pcs update-compute-node-group --cluster-identifier {settings['CLUSTER_ID']} "
            f"--compute-node-group-identifier {settings['GROUP_ID']} --scaling-configuration "
            f"minInstanceCount={settings['MIN_NODES']},maxInstanceCount={settings['NODES']}"
        )
        self._sns.publish(
            TopicArn=settings["TOPIC"],
            Subject=f"{settings['CLUSTER']} launches no more nodes"[:_LONGEST_SUBJECT],
            Message=(
                f"{recent} nodes failed within 24 hours, one of them, {node}, because: {reason}.\n"
                f"The maximum of the compute node group is now {verified}, the number of its verified nodes. "
                f"Jobs that need more nodes wait in the queue.\nOnce the cause is fixed, run: {again}\n"
                "These failures count for 24 hours: until then, one more failure lowers the maximum again.\n\n"
                f"Cluster {settings['CLUSTER']}"
            ),
        )

    def _instances(self) -> Mapping[str, Mapping[str, Any]]:
        """EC2's descriptions of the group's instances by ID, including those terminated within about an hour."""
        filters = [{"Name": f"tag:{GROUP_TAG}", "Values": [self._settings["GROUP_ID"]]}]
        pages = self._ec2.get_paginator("describe_instances").paginate(Filters=filters)
        return {i["InstanceId"]: i for page in pages for entry in page["Reservations"] for i in entry["Instances"]}

    def _failed_node(self, event: Mapping[str, Any]) -> str:
        detail = event.get("detail", {})
        if "object" in detail:
            return self._store.record_instance(str(detail["object"].get("key"))) or ""
        return str(detail.get("instance-id", ""))


def failed_nodes(
    instances: Mapping[str, Mapping[str, Any]], records: Mapping[str, StoredRecord]
) -> Mapping[str, datetime]:
    """When each failed node reported its failure, or was launched if it was terminated without any record.

    Spot Instances that EC2 reclaimed before their record do not count as failed.
    """
    silent = {
        name: instance["LaunchTime"]
        for name, instance in instances.items()
        if instance["State"]["Name"] in _GONE
        and name not in records
        and instance.get("StateReason", {}).get("Code") != _RECLAIMED
    }
    return {**silent, **failures(records)}


def _is_verified(name: str, instances: Mapping[str, Mapping[str, Any]], records: Mapping[str, StoredRecord]) -> bool:
    there = instances[name]["State"]["Name"] not in _GONE
    return there and name in records and records[name].record.state != "failed"
