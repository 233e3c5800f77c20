"""What Kubernetes says of the JobSets of a cluster and their pods."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainium_core.engines.eks.job_set import JOB_LABEL, QUEUE_LABEL
from trainium_wire.formats import one_line
from trainium_wire.job import FAILED

OWNER_LABEL = "kueue.x-k8s.io/job-uid"
"""Label of Kueue's Workload with the UID of its JobSet (Kueue 0.19, pkg/controller/constants)."""
_INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
_STARTING = ("ContainerCreating", "PodInitializing")
_LONGEST_DETAIL = 300


@dataclass(frozen=True, kw_only=True)
class SetState:
    """A JobSet.

    Attributes:
        name: Its name.
        stage: What it waits for, for display; empty if its pods run or it has ended.
        detail: Why it waits.
        end: Result and reason of a job whose pods did not report its end; None before the end.
    """

    name: str
    stage: str = ""
    detail: str = ""
    end: tuple[str, str] | None = None


def queued_uids(items: Iterable[Mapping[str, Any]]) -> Sequence[str]:
    """The UIDs of the JobSets that Kueue has suspended."""
    return [_uid(each) for each in items if each["kind"] == "JobSet" and _is_suspended(each) and _queue(each)]


def set_states(
    items: Iterable[Mapping[str, Any]], workloads: Iterable[Mapping[str, Any]] = ()
) -> Mapping[str, SetState]:
    """The JobSets by the IDs of their jobs.

    Args:
        items: JobSets and pods.
        workloads: Kueue's Workloads of suspended JobSets, as far as they could be read.
    """
    objects = [*items]
    pods: dict[str, list[Mapping[str, Any]]] = {}
    for each in objects:
        if each["kind"] == "Pod":
            pods.setdefault(_job(each), []).append(each)
    reasons = {each["metadata"]["labels"][OWNER_LABEL]: _quota_message(each) for each in workloads}
    return {
        _job(each): _set_state(each, pods.get(_job(each), []), reasons.get(_uid(each), ""))
        for each in objects
        if each["kind"] == "JobSet"
    }


def _set_state(job_set: Mapping[str, Any], pods: list[Mapping[str, Any]], reason: str) -> SetState:
    name, status = job_set["metadata"]["name"], job_set.get("status", {})
    ends = {each["type"]: each.get("message", "") for each in _true(status) if each["type"] in ("Failed", "Completed")}
    if ends:
        ended, message = next(iter(ends.items()))
        reason = f"the JobSet ended before its pods reported how: {one_line(f'{ended}: {message}', _LONGEST_DETAIL)}"
        return SetState(name=name, end=(FAILED, reason))
    if _is_suspended(job_set):
        return SetState(name=name, stage="queued", detail=_why_suspended(job_set, reason))
    waiting = [why for pod in sorted(pods, key=_index) if (why := _why_waiting(pod))]
    if not pods or waiting:
        detail = waiting[0] if waiting else "JobSet has not created the pods yet"
        return SetState(name=name, stage="waiting for the nodes", detail=one_line(detail, _LONGEST_DETAIL))
    return SetState(name=name)


def _why_suspended(job_set: Mapping[str, Any], reason: str) -> str:
    if not (queue := _queue(job_set)):
        return "suspended"
    place = f"--namespace {job_set['metadata']['namespace']} --selector {OWNER_LABEL}={_uid(job_set)}"
    why = one_line(reason, _LONGEST_DETAIL) or f"see `kubectl describe workload {place}`"
    return f"in Kueue's queue {queue}: {why}"


def _quota_message(workload: Mapping[str, Any]) -> str:
    """Why Kueue has not admitted a Workload; empty before its first look."""
    conditions = workload.get("status", {}).get("conditions", ())
    return next((each.get("message", "") for each in conditions if each["type"] == "QuotaReserved"), "")


def _why_waiting(pod: Mapping[str, Any]) -> str:
    """Why a pod does not run yet; empty if it does or has ended."""
    status = pod.get("status", {})
    if status.get("phase", "Pending") != "Pending":
        return ""
    reasons = [
        f"{each.get('reason', 'Pending')}: {each.get('message', '')}"
        for each in status.get("conditions", ())
        if each["type"] == "PodScheduled" and each["status"] == "False"
    ]
    for container in status.get("containerStatuses", ()):
        waits = container.get("state", {}).get("waiting", {})
        if waits and waits.get("reason") not in _STARTING:
            reasons.append(f"{waits.get('reason')}: {waits.get('message', '')}")
    return f"the pod with index {_index(pod)} does not run yet: {reasons[-1] if reasons else 'it is starting'}"


def _true(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in status.get("conditions", ()) if each["status"] == "True"]


def _is_suspended(job_set: Mapping[str, Any]) -> bool:
    return bool(job_set.get("spec", {}).get("suspend"))


def _queue(job_set: Mapping[str, Any]) -> str:
    return job_set["metadata"].get("labels", {}).get(QUEUE_LABEL, "")


def _uid(job_set: Mapping[str, Any]) -> str:
    return job_set["metadata"].get("uid", "")


def _index(pod: Mapping[str, Any]) -> int:
    return int(pod["metadata"].get("annotations", {}).get(_INDEX_ANNOTATION, 0))


def _job(item: Mapping[str, Any]) -> str:
    return item["metadata"].get("labels", {}).get(JOB_LABEL, "")
