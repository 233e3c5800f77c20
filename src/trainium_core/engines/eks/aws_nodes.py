"""Reads the nodes that run the jobs of an EksJobsStack: instances from EC2, their verification from Kubernetes."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from trainium_core.engines.eks.aws_job_place import kubectl_at, record_place
from trainium_core.nodes.report import NodesReport, NodeStatus, node_instance
from trainium_core.plurals import count
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import UnavailableError
from trainium_runtime.fleet_verdict import FleetVerdict
from trainium_runtime.naming import CLUSTER_TAG, EKS_CLUSTER_TAG, EKS_GROUP_TAG, RECORDS_TAG
from trainium_runtime.node_store import NodeStore
from trainium_runtime.tags import tag_values
from trainium_wire.formats import moment
from trainium_wire.keys import RECORDS_PREFIX
from trainium_wire.kubernetes import BOOT_ANNOTATION, CLUSTER_LABEL, RUNNING, STATE_ANNOTATION, UNVERIFIED
from trainium_wire.membership import Membership
from trainium_wire.node_record import failures
from trainium_wire.stack_record import StackRecord

_EXISTING = ("pending", "running", "stopping", "stopped", "shutting-down")
_BILLED = ("pending", "running")
_FAILED, _TAINTED = "failed: ", "tainted: "
_UNTESTED = "untested"
_NOT_JOINED = "not in Kubernetes: its console shows how far it has booted"
_MINUTE, _PATIENCE = timedelta(minutes=1), timedelta(minutes=30)
"""After this time a node has failed that does not join, is not ready or is not being verified. Joining, with the
download of the image, takes a few minutes."""
_LONGEST_TEST = timedelta(hours=1)
"""After this time a node has failed whose pod still tests it, or does not run any more. The tests themselves end after
50 minutes (data/facts.toml, self_test; two attempts of the collectives)."""


def outside_nodes(account: AwsService, record: StackRecord) -> NodesReport:
    """The nodes with the tag of the cluster. kubectl is used only if there are any.

    Raises:
        UnavailableError: A request failed or was denied.
    """
    instances = _instances(
        account, record.cluster, f"tag:{EKS_CLUSTER_TAG}", str(record.settings.get("eks_cluster", ""))
    )
    objects = dict[str, Mapping[str, Any]]()
    if instances:
        kubectl = kubectl_at(account, record_place(record))
        found = kubectl.items("nodes", f"{CLUSTER_LABEL}={record.cluster}")
        objects = {each["spec"].get("providerID", "").rpartition("/")[2]: each for each in found}
    failed, now = _Failures(account), datetime.now(UTC)
    nodes = tuple(node_status(each, objects.get(each["InstanceId"]), failed.of, now) for each in instances)
    return NodesReport(nodes=nodes, verdict=_verdict(nodes), membership=Membership(), asleep=False)


def outliving_nodes(account: AwsService, cluster: str) -> Iterator[str]:
    """A clause about each node group with billed nodes that have the tag of the cluster. Raises UnavailableError."""
    tags = [tag_values(each["Tags"]) for each in _instances(account, cluster, "tag-key", EKS_GROUP_TAG, states=_BILLED)]
    groups = Counter((each.get(EKS_CLUSTER_TAG, ""), each[EKS_GROUP_TAG]) for each in tags)
    for (eks_cluster, group), number in sorted(groups.items()):
        yield (
            f"the EKS node group {group} runs {count(number, 'billed node')}; to end them, run: "
            f"aws eks update-nodegroup-config --region {account.region} --cluster-name {eks_cluster} "
            f"--nodegroup-name {group} --scaling-config desiredSize=0"
        )


def _instances(
    account: AwsService, cluster: str, name: str, value: str, *, states: Sequence[str] = _EXISTING
) -> Sequence[Mapping[str, Any]]:
    filters = [
        {"Name": f"tag:{CLUSTER_TAG}", "Values": [cluster]},
        {"Name": name, "Values": [value]},
        {"Name": "instance-state-name", "Values": [*states]},
    ]
    with read_errors("ec2:DescribeInstances"):
        pages = account.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
        found = [*pages.search("Reservations[].Instances[]")]
    return sorted(found, key=lambda each: each["InstanceId"])


class _Failures:
    """Why nodes have failed, from their records in the buckets that the tags of their instances name."""

    def __init__(self, account: AwsService) -> None:
        self._account = account
        self._reasons = dict[str, Mapping[str, str] | UnavailableError]()

    def of(self, instance: Mapping[str, Any]) -> str:
        """The reason in the record of a failed node; empty without such a record.

        Raises:
            UnavailableError: The records of the bucket could not be read.
        """
        bucket = tag_values(instance.get("Tags")).get(RECORDS_TAG, "")
        if bucket and bucket not in self._reasons:
            try:
                self._reasons[bucket] = self._read(bucket)
            except UnavailableError as error:
                self._reasons[bucket] = error
        reasons = self._reasons.get(bucket, {})
        if isinstance(reasons, UnavailableError):
            raise reasons
        return reasons.get(instance["InstanceId"], "")

    def _read(self, bucket: str) -> Mapping[str, str]:
        with read_errors(f"s3:ListBucket or s3:GetObject on the bucket {bucket}"):
            records = NodeStore(self._account.client("s3"), bucket, RECORDS_PREFIX).records()
        return {instance: records[instance].record.reason for instance in failures(records)}


def node_status(
    described: Mapping[str, Any],
    node: Mapping[str, Any] | None,
    failure_of: Callable[[Mapping[str, Any]], str],
    now: datetime,
) -> NodeStatus:
    """The status of an instance and its Node.

    A node that does not join Kubernetes, is not ready or is not being verified has failed if its record has a failure,
    or after half an hour; a node that is being tested, after an hour.

    Args:
        described: EC2's description of the instance.
        node: The Node of Kubernetes; None if there is none.
        failure_of: Returns the reason in the record of a failed node; otherwise an empty text. An UnavailableError is
            added to the problem.
        now: The current time.
    """
    instance = node_instance(described["InstanceId"], described)
    state, problem, since = instance.state, "", None
    if node is not None:
        state, problem, since = node_state(node)
    elif instance.state in ("pending", "running"):
        state, problem, since = "booting", _NOT_JOINED, instance.launched
    if since is not None:
        reason = unread = ""
        is_tested = problem.startswith(f"{_TAINTED}{RUNNING}")
        try:
            # The record of a node that is being tested is that of an earlier verification.
            reason = "" if is_tested else failure_of(described)
        except UnavailableError as error:
            unread = f"; its record could not be read: {error.reason}"
        if reason:
            state, problem = "failed", reason
        elif now - since > (_LONGEST_TEST if is_tested else _PATIENCE):
            state, problem = "failed", f"{problem} (for {count((now - since) // _MINUTE, 'minute')})"
        problem += unread
    return NodeStatus(
        instance_id=instance.instance_id,
        zone=instance.zone,
        address=instance.address,
        state=state,
        since=None,
        launched=instance.launched,
        problem=problem,
        checks=(),
    )


def node_state(node: Mapping[str, Any]) -> tuple[str, str, datetime | None]:
    """State and problem of a Node of Kubernetes, by its readiness, and the taint and annotations of its verification.

    The third value is the time since which the node waits for a report; None if it does not. A pod that verifies a node
    may wait for its devices without limit, because a job may use them after a reboot.
    """
    meta, status = node["metadata"], node.get("status", {})
    annotations = meta.get("annotations", {})
    said = annotations.get(STATE_ANNOTATION, "")
    if said.startswith(_FAILED):
        return "failed", said.removeprefix(_FAILED), None
    conditions: Sequence[Mapping[str, str]] = status.get("conditions", ())
    ready = next((each for each in conditions if each["type"] == "Ready"), dict[str, str]())
    changed = moment(ready.get("lastTransitionTime"))
    if ready.get("status", "True") != "True":
        return "not ready", ready.get("message", "kubelet does not report"), changed
    if any(taint["key"] == UNVERIFIED for taint in node["spec"].get("taints", ())):
        since = moment(said.removeprefix(RUNNING) if said else meta.get("creationTimestamp"))
        if said and since and changed:
            since = max(since, changed)  # Not the time of a verification that a reboot has interrupted.
        return "booting", f"{_TAINTED}{said or 'no pod of the DaemonSet verifies it yet'}", since
    if not said:
        return _UNTESTED, "neither tainted nor verified: its node group has no NodeVerification", None
    if annotations.get(BOOT_ANNOTATION) != status.get("nodeInfo", {}).get("bootID"):
        return "booting", "not verified since its last boot, and not tainted yet", changed
    return "verified", "", None


def _verdict(nodes: Sequence[NodeStatus]) -> FleetVerdict:
    for state in ("failed", _UNTESTED):
        if named := [node.instance_id for node in nodes if node.state == state]:
            return FleetVerdict(state="failed", reason=f"{state}: {', '.join(named)}")
    verified = sum(node.state == "verified" for node in nodes)
    if not nodes:
        return FleetVerdict(state="ready", reason="no nodes: the desired sizes of the node groups decide")
    reason = f"{verified} of {count(len(nodes), 'node')} verified"
    return FleetVerdict(state="ready" if verified == len(nodes) else "waiting", reason=reason)
