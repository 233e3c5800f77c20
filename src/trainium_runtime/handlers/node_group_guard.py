"""Stops a compute node group of AWS PCS from launching more nodes after too many of them failed.

Invoked for every node record of the cluster, and for every terminated instance of the account in the region. If the
node of the event failed, the function counts the failures in all records and instances of the group.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
_CONFLICT = "ConflictException"  # "conflicting operations ... on the same resource at the same time" (AWS PCS API)
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


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The maximum of a group after a check.

    Attributes:
        maximum: The maximum now.
        before: The maximum before the check.
        kept: The number of each node that may run a job; None if unknown.
        group: Name of the group.
        is_refused: Whether AWS PCS refused a lower maximum, because another operation on the group had not ended.
    """

    maximum: int
    before: int
    kept: Sequence[int | None]
    group: str
    is_refused: bool = False

    @property
    def can_launch(self) -> bool:
        """Whether AWS PCS can still launch nodes below the maximum."""
        return len(self.kept) < self.maximum

    @property
    def sentence(self) -> str:
        """What the maximum is, why, and what remains to be done."""
        if not self.can_launch:
            return (
                f"The maximum of the compute node group is now {self.maximum}, the number of nodes that may run jobs. "
                "Jobs that need more nodes wait in the queue."
            )
        what = "stays" if self.maximum == self.before else "is now"
        others = sorted({*range(1, self.maximum + 1)} - {*self.kept})
        names = "NAMES" if None in self.kept else f"{self.group}-[{','.join(map(str, others))}]"
        why = "with a lower one, AWS PCS would terminate nodes that may run jobs"
        if self.is_refused:
            why = (
                "AWS PCS refused a lower one, because another change of the group has not ended. This function tries "
                "again when a node fails or a failed node is terminated"
            )
        return (
            f"The maximum of the compute node group {what} {self.maximum}: {why}. "
            "The other nodes can still be launched, and are billed. `sinfo` on the login node "
            f"shows them. To prevent their launch, run there: sudo -i scontrol update NodeName={names} State=DOWN "
            "Reason=failing. This ends the jobs on these nodes."
        )


class FailureLimit:
    """Compares the failures of a group with their limit.

    Args:
        settings: Environment variables from the construct.
    """

    def __init__(self, settings: Mapping[str, str], *, store: NodeStore, ec2: Any, pcs: Any, sns: Any) -> None:
        self._settings, self._store = settings, store
        self._ec2, self._pcs, self._sns = ec2, pcs, sns

    def check(self, event: Mapping[str, Any], *, now: datetime) -> None:
        """Lower the group's maximum if too many nodes failed within 24 hours, but keep all nodes that may run a job.

        A maximum of n leaves the Slurm nodes 1 to n: AWS PCS terminates the instances of the others, and their jobs
        fail. So the maximum becomes the highest number of a node that passed its tests at boot, even if it has failed
        since: its job may still run. If failed nodes can still be launched, the notice says so: also if AWS PCS refuses
        the update, which the next failure repeats. Does nothing if the node of the event has not failed.
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
        group = {
            "clusterIdentifier": self._settings["CLUSTER_ID"],
            "computeNodeGroupIdentifier": self._settings["GROUP_ID"],
        }
        bounds = self._pcs.get_compute_node_group(**group)["computeNodeGroup"]["scalingConfiguration"]
        maximum = bounds["maxInstanceCount"]
        kept = [slurm_number(records[name]) for name in instances if _may_run_jobs(name, instances, records)]
        lowest = max((number or maximum for number in kept), default=0)
        scaling = {"minInstanceCount": min(bounds["minInstanceCount"], lowest), "maxInstanceCount": lowest}
        is_lowered = lowest < maximum and self._update(group, scaling)
        if not is_lowered and (len(kept) >= maximum or (node in records and "instance-id" in event.get("detail", {}))):
            # None of the group's other nodes can be launched, or the event of the node's record had this notice.
            return
        bound = Bound(
            maximum=lowest if is_lowered else maximum,
            before=maximum,
            kept=kept,
            group=self._settings["GROUP_NAME"],
            is_refused=lowest < maximum and not is_lowered,
        )
        self._notify(node, reason, len(recent), bound)

    def _update(self, group: Mapping[str, str], scaling: Mapping[str, int]) -> bool:
        """Change the group. Returns False if AWS PCS refuses it, because another operation has not ended.

        While AWS PCS drains a group after a deployment, this may take as long as the jobs. A retry by Lambda would come
        too soon; the next failure invokes the function again.
        """
        from botocore.exceptions import ClientError

        try:
            self._pcs.update_compute_node_group(**group, scalingConfiguration=scaling)
        except ClientError as error:
            if error.response["Error"]["Code"] != _CONFLICT:
                raise
            log(refused=str(error), wanted=scaling["maxInstanceCount"])
            return False
        log(lowered_to=scaling["maxInstanceCount"])
        return True

    def _notify(self, node: str, reason: str, recent: int, bound: Bound) -> None:
        settings = self._settings
        again = (
            f"aws pcs update-compute-node-group --cluster-identifier {settings['CLUSTER_ID']} "
            f"--compute-node-group-identifier {settings['GROUP_ID']} --scaling-configuration "
            f"minInstanceCount={settings['MIN_NODES']},maxInstanceCount={settings['NODES']}"
        )
        subject = f"{settings['CLUSTER']} " + ("still launches" if bound.can_launch else "launches no more") + " nodes"
        self._sns.publish(
            TopicArn=settings["TOPIC"],
            Subject=subject[:_LONGEST_SUBJECT],
            Message=(
                f"{recent} nodes failed within 24 hours, one of them, {node}, because: {reason}.\n"
                f"{bound.sentence}\nOnce the cause is fixed, run: {again}\n"
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


def slurm_number(stored: StoredRecord) -> int | None:
    """The number in the name of a Slurm node, such as 1 of `nodes-1`; None if the record has no such name."""
    number = re.fullmatch(r".*-(\d+)", stored.record.slurm_node)
    return int(number[1]) if number else None


def _may_run_jobs(name: str, instances: Mapping[str, Mapping[str, Any]], records: Mapping[str, StoredRecord]) -> bool:
    """Whether Slurm may have started on a node. Before that, AWS PCS terminates a node that fails."""
    there = instances[name]["State"]["Name"] not in _GONE
    return there and name in records and not records[name].failed_verification
