"""The CreateTrainingJob request of a plan and a job."""

import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import trainium_wire
from trainium_core.engines.sagemaker.jobs.job import TrainingJob, on_spot, sagemaker_type
from trainium_core.engines.sagemaker.jobs.rules import SOURCE_CHANNEL, check_job
from trainium_core.facts import facts, training_facts
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.plan import Plan
from trainium_runtime.naming import CLUSTER_TAG
from trainium_wire.cache_place import DIRECT
from trainium_wire.job_keys import SOURCE_FILE

ENTRY_FILE, PLACE_FILE = "container_entry.py", "compile_cache_place.py"
"""Files next to the packed source: the entry point, and the module that locates compiled graphs."""

CHECKPOINT_FOLDER = f"{training_facts()['container']['root']}/checkpoints"
EXPECTED_PROCESSES = "TRN_EXPECTED_PROCESSES"
"""Number of processes per node. The container entry reads it; `trn jobs` reads it back from the job's description."""

JOB_ID = "TRN_JOB"
"""ID of the job, which is not in the name of its training job."""

SUBMITTED_BY = "TRN_SUBMITTED_BY"
"""Who submitted the job. `trn jobs` reads it back."""

_SECONDS_PER_MINUTE = 60
_DIGEST_CHARACTERS = 16


def channel_files(package: SourcePackage) -> Mapping[str, bytes]:
    """The files of a job's source channel by name: the archive, the container entry, and the module that it imports."""
    entry = Path(__file__).with_name(ENTRY_FILE).read_bytes()
    place = (files(trainium_wire) / "cache_place.py").read_bytes()
    return {SOURCE_FILE: package.archive, ENTRY_FILE: entry, PLACE_FILE: place}


def channel_digest(package: SourcePackage) -> str:
    """First characters of the SHA-256 digest of all files. It names their folder: equal sources are uploaded once."""
    digest = hashlib.sha256()
    for name, content in channel_files(package).items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:_DIGEST_CHARACTERS]


def training_job_request(plan: Plan, job: TrainingJob) -> dict[str, Any]:
    """The request for boto3.

    The container runs the entry point in the source channel. The entry point starts torchrun, so the image needs only
    Python and torch. SageMaker's debugger and profiler do not support Trainium; both are off.

    Args:
        plan: The plan.
        job: The job.

    Raises:
        JobError: All violated rules.
    """
    check_job(plan, job)
    request: dict[str, Any] = {
        "TrainingJobName": job.training_job_name,
        "AlgorithmSpecification": _algorithm(job),
        "RoleArn": job.role_arn,
        "InputDataConfig": [_channel(SOURCE_CHANNEL, job.source_url, "File")]
        + [_channel(name, url, job.input_mode) for name, url in job.inputs.items()],
        "OutputDataConfig": {"S3OutputPath": job.output_url} | ({"KmsKeyId": job.kms_key} if job.kms_key else {}),
        "ResourceConfig": _resources(plan, job),
        "StoppingCondition": _stopping(plan, job),
        "EnableManagedSpotTraining": on_spot(plan, job.training_plan_arn),
        "EnableInterContainerTrafficEncryption": False,
        "EnableNetworkIsolation": False,
        "ProfilerConfig": {"DisableProfiler": True},
        "Environment": launch_environment(plan, job),
        "Tags": [{"Key": key, "Value": value} for key, value in job_tags(plan).items()],
    }
    if job.checkpoint_url is not None:
        request["CheckpointConfig"] = {"S3Uri": job.checkpoint_url, "LocalPath": CHECKPOINT_FOLDER}
    if job.subnet_ids:
        request["VpcConfig"] = {"Subnets": [*job.subnet_ids], "SecurityGroupIds": [*job.security_group_ids]}
    return request


def _algorithm(job: TrainingJob) -> dict[str, Any]:
    entry = f"{training_facts()['container']['root']}/input/data/{SOURCE_CHANNEL}/{ENTRY_FILE}"
    algorithm: dict[str, Any] = {
        "TrainingImage": job.image,
        "TrainingInputMode": job.input_mode,
        "ContainerEntrypoint": ["python3", entry, job.script],
    }
    if job.arguments:
        algorithm["ContainerArguments"] = [*job.arguments]
    return algorithm


def _channel(name: str, url: str, mode: str) -> dict[str, Any]:
    source = {"S3DataType": "S3Prefix", "S3Uri": url, "S3DataDistributionType": "FullyReplicated"}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}, "InputMode": mode}


def _resources(plan: Plan, job: TrainingJob) -> dict[str, Any]:
    resources: dict[str, Any] = {
        "InstanceType": sagemaker_type(plan.instance_type),
        "InstanceCount": plan.nodes,
        "VolumeSizeInGB": volume_gib(plan),
    }
    if job.kms_key is not None and not plan.type.nvme_disks:
        # SageMaker refuses a key for instances with local disks, which are always encrypted.
        resources["VolumeKmsKeyId"] = job.kms_key
    if job.warm_pool_minutes:
        resources["KeepAlivePeriodInSeconds"] = job.warm_pool_minutes * _SECONDS_PER_MINUTE
    if job.training_plan_arn is not None:
        resources["TrainingPlanArn"] = job.training_plan_arn
    return resources


def volume_gib(plan: Plan) -> int:
    """The size of the plan's root volume, but at most that of the local disks: SageMaker adds no volume to them."""
    local = plan.type.nvme_disks * plan.type.nvme_disk_gb * 10**9 // 2**30
    return min(plan.root_volume_gib, local) if local else plan.root_volume_gib


def _stopping(plan: Plan, job: TrainingJob) -> dict[str, int]:
    stopping = {"MaxRuntimeInSeconds": job.max_minutes * _SECONDS_PER_MINUTE}
    if on_spot(plan, job.training_plan_arn):
        # MaxWaitTimeInSeconds includes the run time.
        minutes = job.max_minutes + job.effective_wait_minutes
        stopping["MaxWaitTimeInSeconds"] = minutes * _SECONDS_PER_MINUTE
    return stopping


def launch_environment(plan: Plan, job: TrainingJob) -> dict[str, str]:
    """The variables of the request. Variables of the job override the others.

    EFA is enabled for every type that has EFA: SageMaker's launcher enables it only for ml.trn1.32xlarge.
    """
    defaults = {
        EXPECTED_PROCESSES: str(plan.neuron_cores_per_node),
        "TRN_RENDEZVOUS_PORT": str(facts()["rendezvous"]["port"]),
    }
    own = {JOB_ID: job.name, SUBMITTED_BY: job.submitted_by}
    return defaults | _network(plan) | _neuron(plan, job) | dict(job.environment) | own


def _network(plan: Plan) -> dict[str, str]:
    if not plan.uses_efa:
        return {}
    # Fork safety is needed on kernels before 5.15. The kernel of SageMaker's hosts is unknown.
    return {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "FI_EFA_FORK_SAFE": "1"}


def _neuron(plan: Plan, job: TrainingJob) -> dict[str, str]:
    chosen: dict[str, str] = {}
    if plan.type.logical_neuroncore_configs:
        chosen["NEURON_LOGICAL_NC_CONFIG"] = str(plan.lnc)
    if job.cache_url is not None:
        # Arguments of `cache_place.direct_url`. The container adds the compiler version and the world size.
        cache = {"url": job.cache_url, "instance_type": plan.instance_type, "lnc": plan.lnc or 1}
        chosen["TRN_COMPILE_CACHE"] = json.dumps(cache)
        chosen["NEURON_COMPILE_CACHE_URL"] = f"{job.cache_url}/{DIRECT}"
    if job.checkpoint_url is not None:
        chosen["TRN_CHECKPOINT_DIR"] = CHECKPOINT_FOLDER
    return chosen


def job_tags(plan: Plan) -> dict[str, str]:
    return {CLUSTER_TAG: plan.cluster_name, **plan.tags}
