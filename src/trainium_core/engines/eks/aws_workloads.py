"""Finds and deletes the JobSets of a cluster before its EksJobsStack is deleted."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainium_core.engines.eks.aws_job_place import kubectl_at, record_place
from trainium_core.engines.eks.job_set import JOB_LABEL
from trainium_core.engines.eks.set_states import set_states
from trainium_core.engines.parts import Workloads
from trainium_core.stacks.aws_records import AwsRecords
from trainium_core.teardown.leftovers import Workload
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_wire.job_keys import SUBMITTED_PREFIX
from trainium_wire.kubernetes import CLUSTER_LABEL

_JOB_SET, _ENDING = "JobSet", "ending pod"
_KINDS = "jobsets.jobset.x-k8s.io,pods"
_ACTIVE = ("Pending", "Running")


def _running(account: AwsRecords, cluster: str) -> Iterator[Workload]:
    """JobSets that have not ended, and pods of deleted JobSets, which store their results for up to two minutes.

    kubectl is used only if the bucket of the jobs has any: others may have no kubectl.
    """
    for record in account.records().readable:
        if (record.engine, record.cluster) == ("eks", cluster) and _has_jobs(account, record.bucket):
            place = record_place(record)
            items = kubectl_at(account, place).items(_KINDS, f"{CLUSTER_LABEL}={cluster}")
            yield from (_workload(item, place) for item in _unfinished(items))


def _has_jobs(account: AwsService, bucket: str) -> bool:
    with read_errors(f"s3:ListBucket on the bucket {bucket}", absent=("NoSuchBucket",)):
        parameters = {"Bucket": bucket, "Prefix": f"{SUBMITTED_PREFIX}/", "MaxKeys": 1}
        return "Contents" in account.client("s3").list_objects_v2(**parameters)
    return False


def _unfinished(items: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    sets = set_states(items)
    for item in items:
        job = item["metadata"].get("labels", {}).get(JOB_LABEL, "")
        is_active = item.get("status", {}).get("phase") in _ACTIVE
        if sets[job].end is None if item["kind"] == "JobSet" else job not in sets and is_active:
            yield item


def _workload(item: Mapping[str, Any], place: str) -> Workload:
    meta = item["metadata"]
    is_set = item["kind"] == "JobSet"
    return Workload(
        kind=_JOB_SET if is_set else _ENDING,
        work_id=f"{place}:{meta['name']}",
        stopping=not is_set or "deletionTimestamp" in meta,
    )


def _delete(account: AwsService, work_id: str) -> None:
    place, _, name = work_id.partition(":")
    kubectl_at(account, place).delete("jobset", name)


WORKLOADS = Workloads(
    running=_running, stop={_JOB_SET: _delete}, resource_type="AWS::EKS::PodIdentityAssociation", need_stack=True
)
