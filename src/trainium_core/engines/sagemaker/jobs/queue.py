"""The queues of AWS Batch for training jobs, and the request that puts a job into one of them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainium_core.engines.sagemaker.jobs.job import TrainingJob, on_spot
from trainium_core.engines.sagemaker.jobs.request import job_tags, training_job_request
from trainium_core.facts import training_facts
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.request import JobRequest
from trainium_core.plan import Plan
from trainium_core.problems import Problem, nearest
from trainium_wire.stack_record import StackRecord

_SECONDS_PER_MINUTE = 60
_OVERHEAD_SECONDS = 3600
"""Time of an attempt in addition to its run time: starting the instances, pulling the image, saving the model."""

_LONGEST_SHARE = 255


@dataclass(frozen=True, kw_only=True)
class JobQueue:
    """A job queue for training jobs.

    Attributes:
        name: Name of the queue.
        arn: ARN of the queue.
        cluster: The cluster to which the queue belongs, from its tags; None for other queues.
        has_policy: Whether the queue has a scheduling policy, so that priorities and shares apply.
        enabled: Whether the queue accepts jobs.
    """

    name: str
    arn: str
    cluster: str | None
    has_policy: bool
    enabled: bool


def chosen_queue(queues: Sequence[JobQueue], plan: Plan, request: JobRequest, record: StackRecord) -> JobQueue:
    """The queue that a request names, or the cluster's.

    Args:
        queues: All queues.
        plan: The plan, with the number of instances of the job.
        request: The request.
        record: The record of the cluster's stack, with the limit of the cluster's queue.

    Raises:
        JobError: The queue does not exist, it accepts no jobs, it allows fewer instances than the job has, or the
            priority would have no effect in it.
    """
    own = [queue for queue in queues if queue.cluster == plan.cluster_name]
    found = own if request.queue is None else [queue for queue in queues if queue.name == request.queue]
    if not found:
        names = [queue.name for queue in queues]
        raise _problem(
            "queue",
            request.queue or f"no queue of {plan.cluster_name}",
            allowed=f"a queue of AWS Batch for training jobs in {plan.region}: {', '.join(names) or 'none'}",
            near=nearest(request.queue or "", names),
            fix="name one of these, or deploy the stack, which creates one",
        )
    queue = found[0]
    if not queue.enabled:
        fix = "enable the queue in AWS Batch, or name another queue"
        raise _problem("queue", queue.name, allowed="an enabled queue", fix=fix)
    most = _deployed_limit(record)
    if queue.cluster == plan.cluster_name and most is not None and most < plan.nodes:
        allowed = f"up to {most}, which is the deployed trn:sagemaker_max_instances; the job would wait forever"
        fix = f"pass -c trn:nodes={most}, or raise trn:sagemaker_max_instances and deploy"
        raise JobError([Problem(key="nodes", got=plan.nodes, allowed=allowed, fix=fix)])
    highest = training_facts()["batch"]["highest_priority"]
    if request.priority > highest:
        fix = f"choose {highest} or less"
        raise _problem("priority", request.priority, allowed=f"from 0 to {highest} on sagemaker", fix=fix)
    if request.priority and not queue.has_policy:
        allowed = f"no value in {queue.name}, which has no scheduling policy and starts jobs in their order"
        raise _problem("priority", request.priority, allowed=allowed, fix="remove it, or name another queue")
    return queue


def _deployed_limit(record: StackRecord) -> int | None:
    """The instances that the jobs of the stack's queue can use at a time; None if the record does not say so."""
    raw = record.settings.get("sagemaker_max_instances", record.settings.get("nodes"))
    return raw if isinstance(raw, int) else None


def _problem(key: str, got: object, *, allowed: str, fix: str, near: str | None = None) -> JobError:
    return JobError([JobProblem(key=key, got=got, allowed=allowed, fix=fix, nearest=near)])


def share_identifier(submitter: str) -> str:
    """The fair share of a person, from `Identity.name`: AWS Batch accepts only letters and digits."""
    name = re.sub("[^A-Za-z0-9]", "", submitter.rpartition("/")[2])
    return name[:_LONGEST_SHARE] or "trn"


def service_job_request(plan: Plan, job: TrainingJob, queue: JobQueue, *, priority: int, share: str) -> dict[str, Any]:
    """The SubmitServiceJob request of a job.

    One attempt: AWS Batch repeats a training job that SageMaker has no capacity for, and does not count this as an
    attempt (AWS Batch User Guide, Service job retry strategies). So a script that fails runs, and is billed, once.

    Args:
        plan: The plan.
        job: The job.
        queue: The queue.
        priority: In a queue with a scheduling policy, the priority within the share.
        share: In a queue with a scheduling policy, the share identifier.

    Raises:
        JobError: The job violates a rule, or its request is too large.
    """
    payload = json.dumps(training_job_request(plan, job), separators=(",", ":"))
    most = training_facts()["batch"]["payload_bytes"]
    if len(payload) > most:
        raise _problem(
            "ARGUMENTS",
            f"a request of {len(payload):,} bytes, with {len(job.arguments)} arguments and "
            f"{len(job.environment)} environment variables",
            allowed=f"a CreateTrainingJob request of up to {most:,} bytes as JSON, the limit of AWS Batch",
            fix="put arguments, and the values of environment variables, into a file of the source folder",
        )
    # The limit of the whole request, 30 KiB, is then kept too: escaping the payload at most doubles its size.
    minutes = job.max_minutes + (job.effective_wait_minutes if on_spot(plan, job.training_plan_arn) else 0)
    request: dict[str, Any] = {
        "jobName": job.name,
        "jobQueue": queue.arn,
        "serviceJobType": "SAGEMAKER_TRAINING",
        "serviceRequestPayload": payload,
        "retryStrategy": {"attempts": 1},
        "timeoutConfig": {"attemptDurationSeconds": minutes * _SECONDS_PER_MINUTE + _OVERHEAD_SECONDS},
        "tags": job_tags(plan),
    }
    if queue.has_policy:
        request |= {"shareIdentifier": share, "schedulingPriority": priority}
    return request
