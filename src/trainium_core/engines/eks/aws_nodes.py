"""Reads the nodes that run the jobs of an EksJobsStack: instances from EC2, their verification from Kubernetes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainium_core.engines.eks.aws_job_place import kubectl_at, record_place
from trainium_core.nodes.report import NodesReport, NodeStatus, node_instance
from trainium_core.plurals import count
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.fleet_verdict import FleetVerdict
from trainium_runtime.naming import CLUSTER_TAG
from trainium_runtime.tags import tag_values
from trainium_wire.kubernetes import BOOT_ANNOTATION, CLUSTER_LABEL, STATE_ANNOTATION, UNVERIFIED
from trainium_wire.membership import Membership
from trainium_wire.stack_record import StackRecord

_EXISTING = ("pending", "running", "stopping", "stopped", "shutting-down")
_BILLED = ("pending", "running")
_CLUSTER, _GROUP = "eks:cluster-name", "eks:nodegroup-name"  # tags that EKS sets
_FAILED = "failed: "
_UNTESTED = "untested"


def outside_nodes(account: AwsService, record: StackRecord) -> NodesReport:
    """The nodes with the tag of the cluster. kubectl is used only if there are any.

    Raises:
        UnavailableError: A request failed or was denied.
    """
    instances = _instances(account, record.cluster, f"tag:{_CLUSTER}", str(record.settings.get("eks_cluster", "")))
    objects = dict[str, Mapping[str, Any]]()
    if instances:
        kubectl = kubectl_at(account, record_place(record))
        found = kubectl.items("nodes", f"{CLUSTER_LABEL}={record.cluster}")
        objects = {each["spec"].get("providerID", "").rpartition("/")[2]: each for each in found}
    nodes = tuple(_status(each, objects.get(each["InstanceId"])) for each in instances)
    return NodesReport(nodes=nodes, verdict=_verdict(nodes), membership=Membership(), asleep=False)


def outliving_nodes(account: AwsService, cluster: str) -> Iterator[str]:
    """A clause about each node group with billed nodes that have the tag of the cluster. Raises UnavailableError."""
    tags = [tag_values(each["Tags"]) for each in _instances(account, cluster, "tag-key", _GROUP, states=_BILLED)]
    groups = Counter((each.get(_CLUSTER, ""), each[_GROUP]) for each in tags)
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


def _status(described: Mapping[str, Any], node: Mapping[str, Any] | None) -> NodeStatus:
    instance = node_instance(described["InstanceId"], described)
    state, problem = (instance.state, "")
    if node is not None:
        state, problem = node_state(node)
    elif instance.state in ("pending", "running"):
        state, problem = "booting", "not in Kubernetes: if the checks before kubelet failed, its console has the reason"
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


def node_state(node: Mapping[str, Any]) -> tuple[str, str]:
    """State and problem of a Node of Kubernetes, by the taint and the annotations of its verification."""
    annotations, status = node["metadata"].get("annotations", {}), node.get("status", {})
    said = annotations.get(STATE_ANNOTATION, "")
    if said.startswith(_FAILED):
        return "failed", said.removeprefix(_FAILED)
    if any(taint["key"] == UNVERIFIED for taint in node["spec"].get("taints", ())):
        return "booting", f"tainted: {said or 'no pod of the DaemonSet verifies it yet'}"
    if not said:
        return _UNTESTED, "neither tainted nor verified: its node group has no NodeVerification"
    if annotations.get(BOOT_ANNOTATION) != status.get("nodeInfo", {}).get("bootID"):
        return "booting", "not verified since its last boot, and not tainted yet"
    for each in status.get("conditions", ()):
        if each["type"] == "Ready" and each["status"] != "True":
            return "not ready", each.get("message", "kubelet does not report")
    return "verified", ""


def _verdict(nodes: Sequence[NodeStatus]) -> FleetVerdict:
    for state in ("failed", _UNTESTED):
        if named := [node.instance_id for node in nodes if node.state == state]:
            return FleetVerdict(state="failed", reason=f"{state}: {', '.join(named)}")
    verified = sum(node.state == "verified" for node in nodes)
    if not nodes:
        return FleetVerdict(state="ready", reason="no nodes: the desired sizes of the node groups decide")
    reason = f"{verified} of {count(len(nodes), 'node')} verified"
    return FleetVerdict(state="ready" if verified == len(nodes) else "waiting", reason=reason)
