"""What Kubernetes says of the JobSets of a cluster and their pods."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainium_core.engines.eks.job_set import JOB_LABEL, QUEUE_LABEL
from trainium_wire.formats import one_line
from trainium_wire.job import FAILED

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


def set_states(items: Iterable[Mapping[str, Any]]) -> Mapping[str, SetState]:
    """The JobSets by the IDs of their jobs.

    Args:
        items: JobSets and pods.
    """
    objects = [*items]
    pods: dict[str, list[Mapping[str, Any]]] = {}
    for each in objects:
        if each["kind"] == "Pod":
            pods.setdefault(_job(each), []).append(each)
    return {_job(each): _set_state(each, pods.get(_job(each), [])) for each in objects if each["kind"] == "JobSet"}


def _set_state(job_set: Mapping[str, Any], pods: list[Mapping[str, Any]]) -> SetState:
    name, status = job_set["metadata"]["name"], job_set.get("status", {})
    ends = {each["type"]: each.get("message", "") for each in _true(status) if each["type"] in ("Failed", "Completed")}
    if ends:
        ended, message = next(iter(ends.items()))
        reason = f"the JobSet ended before its pods reported how: {one_line(f'{ended}: {message}', _LONGEST_DETAIL)}"
        return SetState(name=name, end=(FAILED, reason))
    if job_set.get("spec", {}).get("suspend"):
        queue = job_set["metadata"].get("labels", {}).get(QUEUE_LABEL)
        return SetState(name=name, stage="queued", detail=f"in Kueue's queue {queue}" if queue else "suspended")
    waiting = [why for pod in sorted(pods, key=_index) if (why := _why_waiting(pod))]
    if not pods or waiting:
        detail = waiting[0] if waiting else "JobSet has not created the pods yet"
        return SetState(name=name, stage="waiting for the nodes", detail=one_line(detail, _LONGEST_DETAIL))
    return SetState(name=name)


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


def _index(pod: Mapping[str, Any]) -> int:
    return int(pod["metadata"].get("annotations", {}).get(_INDEX_ANNOTATION, 0))


def _job(item: Mapping[str, Any]) -> str:
    return item["metadata"].get("labels", {}).get(JOB_LABEL, "")
