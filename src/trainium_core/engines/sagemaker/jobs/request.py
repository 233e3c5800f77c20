"""The CreateTrainingJob request that a plan and a job come to."""

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
"""Beside the packed source: what the container starts, and the module that tells it where compiled graphs are."""

CHECKPOINT_FOLDER = f"{training_facts()['container']['root']}/checkpoints"
EXPECTED_PROCESSES = "TRN_EXPECTED_PROCESSES"
"""Variable that the container entry reads, and that tells afterwards how many processes each node has had."""

_SECONDS_PER_MINUTE = 60
_DIGEST_CHARACTERS = 16


def channel_files(package: SourcePackage) -> Mapping[str, bytes]:
    """What the source channel of a job holds, by name: the archive, our container entry, and what it imports."""
    entry = Path(__file__).with_name(ENTRY_FILE).read_bytes()
    place = (files(trainium_wire) / "cache_place.py").read_bytes()
    return {SOURCE_FILE: package.archive, ENTRY_FILE: entry, PLACE_FILE: place}


def channel_digest(package: SourcePackage) -> str:
    """Begin of the SHA-256 digest of all files: names the folder, so that equal sources are uploaded once."""
    digest = hashlib.sha256()
    for name, content in channel_files(package).items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:_DIGEST_CHARACTERS]


def training_job_request(plan: Plan, job: TrainingJob) -> dict[str, Any]:
    """The request as boto3 takes it. Raises JobError with every rule that plan and job break.

    The container starts our own entry from the source channel, which starts torchrun: the request depends on nothing
    that an image may or may not hold but Python and torch. SageMaker's debugger and profiler do not work with
    Trainium; both are off.
    """
    check_job(plan, job)
    request: dict[str, Any] = {
        "TrainingJobName": job.name,
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
        "Tags": [{"Key": key, "Value": value} for key, value in _tags(plan).items()],
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
        # SageMaker refuses a key for instances with local disks, which encrypt by themselves.
        resources["VolumeKmsKeyId"] = job.kms_key
    if job.warm_pool_minutes:
        resources["KeepAlivePeriodInSeconds"] = job.warm_pool_minutes * _SECONDS_PER_MINUTE
    if job.training_plan_arn is not None:
        resources["TrainingPlanArn"] = job.training_plan_arn
    return resources


def volume_gib(plan: Plan) -> int:
    """The plan's root volume, but no more than local disks hold: SageMaker adds none to them, and refuses more."""
    local = plan.type.nvme_disks * plan.type.nvme_disk_gb * 10**9 // 2**30
    return min(plan.root_volume_gib, local) if local else plan.root_volume_gib


def _stopping(plan: Plan, job: TrainingJob) -> dict[str, int]:
    stopping = {"MaxRuntimeInSeconds": job.max_minutes * _SECONDS_PER_MINUTE}
    if on_spot(plan, job.training_plan_arn):
        # SageMaker counts waiting and running together.
        minutes = job.max_minutes + job.effective_wait_minutes
        stopping["MaxWaitTimeInSeconds"] = minutes * _SECONDS_PER_MINUTE
    return stopping


def launch_environment(plan: Plan, job: TrainingJob) -> dict[str, str]:
    """Every variable of the container, as the plan's nodes would have them; what the job itself gives wins.

    EFA is switched on for every type that has it: SageMaker's own launcher knows ml.trn1.32xlarge alone.
    """
    ours = {
        EXPECTED_PROCESSES: str(plan.neuron_cores_per_node),
        "TRN_RENDEZVOUS_PORT": str(facts()["rendezvous"]["port"]),
    }
    return ours | _network(plan) | _neuron(plan, job) | dict(job.environment)


def _network(plan: Plan) -> dict[str, str]:
    if not plan.uses_efa:
        return {}
    # Fork safety is needed on kernels before 5.15, and which one SageMaker's hosts have is not ours to know.
    return {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "FI_EFA_FORK_SAFE": "1"}


def _neuron(plan: Plan, job: TrainingJob) -> dict[str, str]:
    chosen: dict[str, str] = {}
    if plan.type.logical_neuroncore_configs:
        chosen["NEURON_LOGICAL_NC_CONFIG"] = str(plan.lnc)
    if job.cache_url is not None:
        # What a release's entries must have in common, but for the compiler, whose version only the container knows.
        known = {"url": job.cache_url, "instance_type": plan.instance_type, "lnc": plan.lnc or 1}
        chosen["TRN_COMPILE_CACHE"] = json.dumps(known)
        chosen["NEURON_COMPILE_CACHE_URL"] = f"{job.cache_url}/{DIRECT}"
    if job.checkpoint_url is not None:
        chosen["TRN_CHECKPOINT_DIR"] = CHECKPOINT_FOLDER
    return chosen


def _tags(plan: Plan) -> dict[str, str]:
    return {CLUSTER_TAG: plan.cluster_name, **plan.tags}
