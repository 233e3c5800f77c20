"""The CreateTrainingJob request that a plan and a job come to."""

from typing import Any

from trainium_core.engines.sagemaker.jobs.environment import CHECKPOINT_FOLDER, launch_environment
from trainium_core.engines.sagemaker.jobs.job import TrainingJob, sagemaker_type
from trainium_core.engines.sagemaker.jobs.rules import check_job
from trainium_core.engines.sagemaker.jobs.source_channel import ENTRY_FILE, SOURCE_CHANNEL
from trainium_core.facts import training_facts
from trainium_core.plan import Plan
from trainium_runtime.naming import CLUSTER_TAG

SECONDS_PER_HOUR = 3600
SECONDS_PER_MINUTE = 60


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
        "EnableManagedSpotTraining": job.on_spot(plan),
        "EnableInterContainerTrafficEncryption": False,
        "EnableNetworkIsolation": False,
        "ProfilerConfig": {"DisableProfiler": True},
        "Environment": launch_environment(plan, job),
        "Tags": [{"Key": key, "Value": value} for key, value in _tags(plan).items()],
    }
    if job.hyperparameters:
        request["HyperParameters"] = dict(job.hyperparameters)
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
        resources["KeepAlivePeriodInSeconds"] = job.warm_pool_minutes * SECONDS_PER_MINUTE
    if job.training_plan_arn is not None:
        resources["TrainingPlanArn"] = job.training_plan_arn
    return resources


def volume_gib(plan: Plan) -> int:
    """The plan's root volume, but no more than local disks hold: SageMaker adds none to them, and refuses more."""
    local = plan.type.nvme_disks * plan.type.nvme_disk_gb * 10**9 // 2**30
    return min(plan.root_volume_gib, local) if local else plan.root_volume_gib


def _stopping(plan: Plan, job: TrainingJob) -> dict[str, int]:
    stopping = {"MaxRuntimeInSeconds": round(job.max_hours * SECONDS_PER_HOUR)}
    if job.on_spot(plan):
        stopping["MaxWaitTimeInSeconds"] = round(job.effective_max_wait_hours * SECONDS_PER_HOUR)
    return stopping


def _tags(plan: Plan) -> dict[str, str]:
    return {CLUSTER_TAG: plan.cluster_name, **plan.tags}
