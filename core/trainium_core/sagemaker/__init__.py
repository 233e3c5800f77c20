"""Training jobs of SageMaker: the same plan, without machines to keep."""

from trainium_core.sagemaker.images import training_image
from trainium_core.sagemaker.job import TrainingJob, job_name
from trainium_core.sagemaker.locations import JobLocations, locations_from_outputs, locations_in_bucket
from trainium_core.sagemaker.problems import JobError
from trainium_core.sagemaker.request import training_job_request
from trainium_core.sagemaker.run import run_training_job, start_training_job
from trainium_core.sagemaker.source_package import SourcePackage, pack_source

__all__ = [
    "JobError",
    "JobLocations",
    "SourcePackage",
    "TrainingJob",
    "job_name",
    "locations_from_outputs",
    "locations_in_bucket",
    "pack_source",
    "run_training_job",
    "start_training_job",
    "training_image",
    "training_job_request",
]
