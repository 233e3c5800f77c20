"""Training jobs of SageMaker: the same plan, without machines to keep."""

from trainium_core.sagemaker.images import training_image
from trainium_core.sagemaker.job import TrainingJob, job_name
from trainium_core.sagemaker.places import JobPlaces, places_from_outputs, places_in_bucket
from trainium_core.sagemaker.problems import JobError
from trainium_core.sagemaker.request import training_job_request
from trainium_core.sagemaker.run import run_training_job, start_training_job
from trainium_core.sagemaker.source_package import SourcePackage, pack_source

__all__ = [
    "JobError",
    "JobPlaces",
    "SourcePackage",
    "TrainingJob",
    "job_name",
    "pack_source",
    "places_from_outputs",
    "places_in_bucket",
    "run_training_job",
    "start_training_job",
    "training_image",
    "training_job_request",
]
