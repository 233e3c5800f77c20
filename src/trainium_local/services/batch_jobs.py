"""AWS Batch's queues for SageMaker training jobs, which moto lacks: environments, queues, and service jobs.

A job starts at once if its environment is large enough for it, and otherwise stays in its queue. moto's training jobs
complete when they are created.
"""

import inspect
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from botocore import xform_name
from botocore.validate import ParamValidator
from moto.batch import urls
from moto.batch.exceptions import ClientException
from moto.batch.models import JobQueue
from moto.batch.responses import BatchResponse
from moto.core.utils import get_service_model, unix_time
from moto.sagemaker.models import sagemaker_backends

_TYPE = "SAGEMAKER_TRAINING"
_PAYLOAD_BYTES = 10 * 1024
_STATES = {"Completed": "SUCCEEDED", "InProgress": "RUNNING", "Stopping": "RUNNING"}
_TOO_SMALL = "MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE"


@dataclass
class _Region:
    """What a region has, beside moto's queues."""

    environments: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])


def _region(backend: Any) -> _Region:
    """The region of moto's backend, which forgets it when moto resets the backend."""
    if not hasattr(backend, "trn_region"):
        backend.trn_region = _Region()
    return backend.trn_region


def _arn(backend: Any, kind: str, name: str) -> str:
    return f"arn:aws:batch:{backend.region_name}:{backend.account_id}:{kind}/{name}"


def _environment(backend: Any, identifier: str) -> dict[str, Any]:
    name = identifier.rpartition("/")[2]
    if name not in _region(backend).environments:
        raise ClientException(f"Service environment {identifier} does not exist")
    return _region(backend).environments[name]


class _Operations:
    """The operations, by the last part of their path. They replace those of moto's BatchResponse."""

    def createserviceenvironment(self: Any) -> str:
        backend, given = self.batch_backend, json.loads(self.body)
        name = given["serviceEnvironmentName"]
        if name in _region(backend).environments:
            raise ClientException(f"Object already exists: {name}")
        arn = _arn(backend, "service-environment", name)
        named = {"serviceEnvironmentName": name, "serviceEnvironmentArn": arn}
        kept = {key: given[key] for key in ("serviceEnvironmentType", "capacityLimits")}
        state = {"state": given.get("state", "ENABLED"), "status": "VALID"}
        _region(backend).environments[name] = {**named, **kept, **state}
        backend.tag_resource(arn, given.get("tags"))
        return json.dumps(named)

    def describeserviceenvironments(self: Any) -> str:
        backend, wanted = self.batch_backend, json.loads(self.body or "{}").get("serviceEnvironments")
        found = [_environment(backend, one) for one in wanted] if wanted else _region(backend).environments.values()
        shown = [one | {"tags": backend.list_tags_for_resource(one["serviceEnvironmentArn"])} for one in found]
        return json.dumps({"serviceEnvironments": shown})

    def updateserviceenvironment(self: Any) -> str:
        given = json.loads(self.body)
        environment = _environment(self.batch_backend, given["serviceEnvironment"])
        environment |= {key: given[key] for key in ("state", "capacityLimits") if given.get(key)}
        return json.dumps({key: environment[key] for key in ("serviceEnvironmentName", "serviceEnvironmentArn")})

    def deleteserviceenvironment(self: Any) -> str:
        backend = self.batch_backend
        environment = _environment(backend, json.loads(self.body)["serviceEnvironment"])
        arn = environment["serviceEnvironmentArn"]
        if environment["state"] != "DISABLED":
            raise ClientException("Cannot delete, service environment must be disabled first")
        if any(arn in _service_environments(queue) for queue in backend._job_queues.values()):
            raise ClientException("Cannot delete, found existing JobQueue relationship")
        del _region(backend).environments[environment["serviceEnvironmentName"]]
        backend.tagger.delete_all_tags_for_resource(arn)
        return "{}"

    def submitservicejob(self: Any) -> str:
        backend, given = self.batch_backend, json.loads(self.body)
        queue = backend.get_job_queue(given["jobQueue"])
        if queue is None or not _service_environments(queue):
            raise ClientException(f"JobQueue {given['jobQueue']} not found")
        if queue.state != "ENABLED":
            raise ClientException(f"Job queue {queue.name} is disabled")
        if bool(given.get("shareIdentifier")) != bool(queue.schedule_policy):
            raise ClientException(
                "shareIdentifier must be specified if, and only if, the queue has a scheduling policy"
            )
        if len(given["serviceRequestPayload"].encode()) > _PAYLOAD_BYTES:
            raise ClientException(f"serviceRequestPayload must not exceed {_PAYLOAD_BYTES} bytes")
        job_id = str(uuid.uuid4())
        job = given | {"jobId": job_id, "jobQueue": queue.arn, "jobArn": _arn(backend, "service-job", job_id)}
        job |= {"createdAt": int(unix_time() * 1000), "status": "RUNNABLE", "attempts": []}
        _region(backend).jobs[job_id] = job
        backend.tag_resource(job["jobArn"], given.get("tags"))
        (environment,) = (_environment(backend, arn) for arn in _service_environments(queue))
        _start(backend, job, environment)
        return json.dumps({key: job[key] for key in ("jobArn", "jobName", "jobId")})

    def describeservicejob(self: Any) -> str:
        return json.dumps(_current(self.batch_backend, json.loads(self.body)["jobId"]))

    def listservicejobs(self: Any) -> str:
        backend, given = self.batch_backend, json.loads(self.body or "{}")
        queue = backend.get_job_queue(given["jobQueue"])
        if queue is None:
            raise ClientException(f"JobQueue {given['jobQueue']} not found")
        (name,) = [one["values"][0] for one in given.get("filters", ()) if one["name"] == "JOB_NAME"] or [None]
        jobs = [_current(backend, job_id) for job_id in reversed(_region(backend).jobs)]
        status = given.get("jobStatus", "RUNNING")
        found = [
            job
            for job in jobs
            if job["jobQueue"] == queue.arn and (_is_named(job, name) if name else job["status"] == status)
        ]
        left_out = ("attempts", "serviceRequestPayload", "retryStrategy", "timeoutConfig", "tags", "jobQueue")
        return json.dumps({"jobSummaryList": [{k: job[k] for k in job if k not in left_out} for job in found]})

    def terminateservicejob(self: Any) -> str:
        backend, given = self.batch_backend, json.loads(self.body)
        job = _current(backend, given["jobId"])
        if job["status"] not in ("SUCCEEDED", "FAILED"):
            ended = {"isTerminated": True, "statusReason": given["reason"], "stoppedAt": int(unix_time() * 1000)}
            _region(backend).jobs[given["jobId"]] |= ended
            for training in _training_jobs(backend, job):
                training.training_job_status = training.secondary_status = "Stopped"
        return "{}"


def _is_named(job: dict[str, Any], wanted: str) -> bool:
    name, wanted = job["jobName"].lower(), wanted.lower()
    return name.startswith(wanted[:-1]) if wanted.endswith("*") else name == wanted


def _start(backend: Any, job: dict[str, Any], environment: dict[str, Any]) -> None:
    """Create the training job, unless the environment is too small or SageMaker's model refuses the request."""
    request = json.loads(job["serviceRequestPayload"])
    shape: Any = get_service_model("sagemaker").operation_model("CreateTrainingJob").input_shape
    errors = ParamValidator().validate(request, shape)
    if errors.has_errors():
        job |= {"status": "FAILED", "statusReason": f"Received status from SageMaker: {errors.generate_report()}"}
        return
    if request["ResourceConfig"]["InstanceCount"] > environment["capacityLimits"][0]["maxCapacity"]:
        job["statusReason"] = _TOO_SMALL
        return
    name = f"AWSBatch{request['TrainingJobName'][:23]}{uuid.uuid4().hex}"
    sagemaker: Any = sagemaker_backends[backend.account_id][backend.region_name]
    given = {xform_name(key): value for key, value in (request | {"TrainingJobName": name}).items()}
    names = inspect.signature(sagemaker.create_training_job).parameters
    training = sagemaker.create_training_job(**{name: given.get(name) for name in names})
    attempt = {"serviceResourceId": {"name": "TrainingJobArn", "value": training.arn}}
    job |= {"attempts": [attempt], "latestAttempt": attempt, "startedAt": job["createdAt"]}


def _training_jobs(backend: Any, job: dict[str, Any]) -> Iterator[Any]:
    trainings: dict[str, Any] = sagemaker_backends[backend.account_id][backend.region_name].training_jobs
    for attempt in job["attempts"]:
        yield trainings[attempt["serviceResourceId"]["value"].rpartition("/")[2]]


def _current(backend: Any, job_id: str) -> dict[str, Any]:
    """The job, with the status that follows from its training job."""
    job = _region(backend).jobs.get(job_id)
    if job is None:
        raise ClientException(f"Service job {job_id} does not exist")
    for training in _training_jobs(backend, job):
        job["status"] = _STATES.get(training.training_job_status, "FAILED")
        job.setdefault("statusReason", f"Received status from SageMaker: {training.training_job_status}")
    if job.get("isTerminated") and not job["attempts"]:
        job["status"] = "FAILED"
    return {"startedAt": 0} | job


def _service_environments(queue: Any) -> list[str]:
    return [one["serviceEnvironment"] for one in getattr(queue, "service_order", ())]


def _create_queue(original: Any, response: Any) -> str:
    given = json.loads(response.body)
    if "serviceEnvironmentOrder" not in given:
        return original(response)
    backend, name = response.batch_backend, given["jobQueueName"]
    if backend.get_job_queue_by_name(name) is not None:
        raise ClientException(f"Object already exists: {name}")
    order = [
        one | {"serviceEnvironment": _environment(backend, one["serviceEnvironment"])["serviceEnvironmentArn"]}
        for one in given["serviceEnvironmentOrder"]
    ]
    policy = given.get("schedulingPolicyArn")
    queue: Any = JobQueue(
        name, given["priority"], given.get("state", "ENABLED"), [], [], policy, backend, given.get("tags")
    )
    queue.service_order = order
    backend._job_queues[queue.arn] = queue
    return json.dumps({"jobQueueArn": queue.arn, "jobQueueName": name})


def _delete_queue(original: Any, response: Any) -> str:
    queue = response.batch_backend.get_job_queue(json.loads(response.body)["jobQueue"])
    if queue is not None and queue.state != "DISABLED":
        raise ClientException(f"Cannot delete {queue.name}, because its state is not DISABLED")
    if queue is not None:
        response.batch_backend.tagger.delete_all_tags_for_resource(queue.arn)
    return original(response)


def _describe_queue(original: Any, queue: Any) -> dict[str, Any]:
    shown = {key: value for key, value in original(queue).items() if value is not None}
    order = getattr(queue, "service_order", None)
    return shown if order is None else shown | {"serviceEnvironmentOrder": order, "jobQueueType": _TYPE}


def install() -> None:
    """Add the operations to moto's AWS Batch, once for each process."""
    if hasattr(BatchResponse, "submitservicejob"):
        return
    batch: Any = BatchResponse
    for name, operation in vars(_Operations).items():
        if not name.startswith("_"):
            setattr(batch, name, operation)
            urls.url_paths[f"{{0}}/v1/{name}$"] = BatchResponse.dispatch
    for owner, name, by in (
        (batch, "createjobqueue", _create_queue),
        (batch, "deletejobqueue", _delete_queue),
        (JobQueue, "describe", _describe_queue),
    ):
        setattr(owner, name, _bound(by, getattr(owner, name)))


def _bound(by: Any, original: Any) -> Any:
    def wrapped(owner: Any) -> Any:
        return by(original, owner)

    return wrapped
