"""The JobSet of a job: one pod for each node, which JobSet starts and ends together.

Kubernetes API 1.35, JobSet 0.12. `tests/core/test_eks_job_set.py` holds what their schemas do not say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainium_core.engines.eks.job_program import ARCHIVE, program_name
from trainium_core.plan import Plan
from trainium_wire.job import RESTART_CODE, Job, jobs_url
from trainium_wire.kubernetes import CLUSTER_LABEL, NEURON

REPLICATED_JOB, CONTAINER = "node", "job"
LONGEST_POD_NAME = 63
"""JobSet refuses a set whose pods could have longer names: each is also a host name."""

JOB_LABEL = "trn/job"
"""Label of the JobSet and its pods."""

QUEUE_LABEL, PRIORITY_LABEL = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
_UID_LABEL, _RESTART_LABEL = "jobset.sigs.k8s.io/jobset-uid", "jobset.sigs.k8s.io/restart-attempt"
"""Labels that JobSet sets on pods (jobset_controller.go, 0.12). A JobSet that Kueue suspends and resumes keeps both."""
_PLUGIN_RESOURCES = {"neuron": NEURON, "efa": "vpc.amazonaws.com/efa"}
_DEVICE_CLASSES = {"neuron": "neuron.aws.com", "efa": "efa.networking.k8s.aws"}
"""Names of the device plugins' resources and of the DRA drivers' classes (Amazon EKS User Guide, Neuron and EFA
devices)."""

_PROGRAM, _WORK, _SHARED_MEMORY = "/opt/trn-program", "/var/trn", "/dev/shm"
_WAIT_SECONDS, _GRACE_SECONDS, _RESULT_SECONDS = 1200, 120, 1500
"""How long a pod waits for the others; from SIGTERM to SIGKILL; for storing results after the time limit."""
_ENOUGH_RESTARTS = 100
"""The pods decide whether the job is retried: retries count from the last progress, which JobSet does not see. This
limit also counts restarts in which no attempt began."""
_KEPT_SECONDS = 86_400
"""How long an ended JobSet is kept, with the output of its pods. The log of the job is in S3."""


@dataclass(frozen=True, kw_only=True)
class PodSettings:
    """Where the pods of a cluster's jobs run, and what they use.

    Attributes:
        image: URI of the container image.
        bucket: Bucket of the jobs.
        cache_url: S3 URL of the compile cache.
        queue: Kueue's queue, if any.
        priority: Priority in the queue; 0 without one.
    """

    image: str
    bucket: str
    cache_url: str
    queue: str | None = None
    priority: int = 0


def job_set_name(job: Job) -> str:
    """The name of the JobSet, which begins with a letter, and is short enough for the names of all pods.

    The time at the end of the job's ID stays; the name before it is cut off.
    """
    suffix = f"-{REPLICATED_JOB}-0-{job.nodes - 1}-xxxxx"
    name, time = job.id[:-16], job.id[-16:]
    room = LONGEST_POD_NAME - len(suffix) - len("trn-") - len(time)
    return f"trn-{name[:room].rstrip('-')}{time}"


def priority_class(priority: int) -> str:
    """The name of Kueue's WorkloadPriorityClass for a priority."""
    return f"trn-priority-{priority}"


def job_objects(plan: Plan, job: Job, pods: PodSettings) -> Sequence[Mapping[str, Any]]:
    """The JobSet, and the template of the claims of its pods if they get devices by claim."""
    claims = [_claim_template(plan)] if plan.eks.claims_devices(plan.type) else []
    return [_job_set(plan, job, pods), *claims]


def _job_set(plan: Plan, job: Job, pods: PodSettings) -> Mapping[str, Any]:
    queue = {QUEUE_LABEL: pods.queue} if pods.queue else {}
    priority = {PRIORITY_LABEL: priority_class(pods.priority)} if pods.priority else {}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": job_set_name(job),
            "namespace": plan.eks.namespace,
            "labels": {**_labels(job), **queue, **priority},
        },
        "spec": {
            "ttlSecondsAfterFinished": _KEPT_SECONDS,
            "failurePolicy": {
                "maxRestarts": _ENOUGH_RESTARTS if job.retries else 0,
                "restartStrategy": "BlockingRecreate",
                # A pod that asks for a restart, or whose node is lost, exceeds the limit of 0 retries instead.
                "rules": [
                    {
                        "name": "failedForGood",
                        "action": "FailJobSet",
                        "onJobFailureReasons": ["PodFailurePolicy"],
                    }
                ],
            },
            "replicatedJobs": [{"name": REPLICATED_JOB, "replicas": 1, "template": {"spec": _job(plan, job, pods)}}],
        },
    }


def _job(plan: Plan, job: Job, pods: PodSettings) -> Mapping[str, Any]:
    other_codes = {"containerName": CONTAINER, "operator": "NotIn", "values": sorted([RESTART_CODE])}
    return {
        "parallelism": job.nodes,
        "completions": job.nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "podFailurePolicy": {
            "rules": [
                # Before the exit codes: a pod that Kubernetes ends because of its node has one, too.
                {"action": "Count", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "FailJob", "onExitCodes": other_codes},
            ]
        },
        "template": {"metadata": {"labels": _labels(job)}, "spec": _pod(plan, job, pods)},
    }


def _pod(plan: Plan, job: Job, pods: PodSettings) -> Mapping[str, Any]:
    claims = plan.eks.claims_devices(plan.type)
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "serviceAccountName": plan.eks.service_account,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "nodeSelector": {CLUSTER_LABEL: plan.cluster_name},
        "tolerations": [{"key": NEURON, "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [
            {
                "name": CONTAINER,
                "image": pods.image,
                "command": ["/bin/sh", "-c", _start_command()],
                "env": [{"name": name, **value} for name, value in _environment(plan, job, pods).items()],
                "resources": {"claims": [{"name": "devices"}]} if claims else {"limits": _device_limits(plan)},
                # EFA locks memory.
                "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
                "volumeMounts": [
                    {"name": "program", "mountPath": _PROGRAM, "readOnly": True},
                    {"name": "work", "mountPath": _WORK},
                    {"name": "shared-memory", "mountPath": _SHARED_MEMORY},
                ],
            }
        ],
        "volumes": [
            {"name": "program", "configMap": {"name": program_name()}},
            {"name": "work", "emptyDir": {}},
            # The default of 64 MiB is too small for the data loaders of PyTorch.
            {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        ],
    }
    if claims:
        spec["resourceClaims"] = [{"name": "devices", "resourceClaimTemplateName": _claim_name(plan)}]
    if job.time_limit_seconds is not None:
        # Only if the program of the pod hangs: it ends the job at the time limit.
        spec["activeDeadlineSeconds"] = job.time_limit_seconds + _WAIT_SECONDS + _RESULT_SECONDS
    return spec


def _start_command() -> str:
    folder = f"{_WORK}/program"
    unpack = f"python3 -m zipfile -e {_PROGRAM}/{ARCHIVE} {folder}"
    # PYTHONPATH would also apply to the job.
    return f"{unpack} && cd {folder} && exec python3 -m trn_pod"


def _environment(plan: Plan, job: Job, pods: PodSettings) -> Mapping[str, Mapping[str, Any]]:
    """The environment of the program. JOB_COMPLETION_INDEX, the rank, comes from Kubernetes."""
    values = {
        "TRN_JOB": job.id,
        "TRN_JOBS_URL": jobs_url(pods.bucket),
        "TRN_FOLDER": _WORK,
        "TRN_WAIT_SECONDS": str(_WAIT_SECONDS),
        "TRN_GRACE_SECONDS": str(_GRACE_SECONDS - 20),
        "TRN_INSTANCE_TYPE": plan.instance_type,
        "TRN_LNC": str(plan.lnc or 1),
        "TRN_CACHE_URL": pods.cache_url,
        **({"TRN_CACHE_ACCESS": "read"} if plan.cache.access == "read" else {}),
        "TRN_NEURON_CORES": str(plan.neuron_cores_per_node),
        "AWS_REGION": plan.region,
        "AWS_DEFAULT_REGION": plan.region,
        **({"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1"} if plan.uses_efa else {}),
        **({"NEURON_LOGICAL_NC_CONFIG": str(plan.lnc)} if plan.type.logical_neuroncore_configs else {}),
    }
    fields = {
        "TRN_JOBSET_UID": f"metadata.labels['{_UID_LABEL}']",
        "TRN_RESTARTS": f"metadata.labels['{_RESTART_LABEL}']",
        "TRN_POD_ADDRESS": "status.podIP",
        "TRN_NODE_NAME": "spec.nodeName",
    }
    return {
        **{name: {"value": value} for name, value in values.items()},
        **{name: {"valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()},
    }


def _devices(plan: Plan) -> Mapping[str, int]:
    """The devices of a node, all of which a pod gets."""
    efa = plan.type.efa_interfaces
    return {"neuron": plan.type.neuron_devices, **({"efa": efa} if efa else {})}


def _device_limits(plan: Plan) -> Mapping[str, int]:
    return {_PLUGIN_RESOURCES[kind]: count for kind, count in _devices(plan).items()}


def _claim_name(plan: Plan) -> str:
    """The name of the template, which differs between types: the API server refuses another content."""
    return "-".join(["trn", *(f"{kind}-{count}" for kind, count in _devices(plan).items())])


def _claim_template(plan: Plan) -> Mapping[str, Any]:
    """The template of the claims of all jobs, for all devices of a node.

    By their number: Kueue does not admit pods whose claims have the allocation mode `All` (0.19, pkg/dra/claims.go).
    """
    requests = [
        {
            "name": kind,
            "exactly": {"deviceClassName": _DEVICE_CLASSES[kind], "allocationMode": "ExactCount", "count": count},
        }
        for kind, count in _devices(plan).items()
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": _claim_name(plan), "namespace": plan.eks.namespace},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }


def _labels(job: Job) -> Mapping[str, str]:
    return {CLUSTER_LABEL: job.cluster, JOB_LABEL: job.id}
