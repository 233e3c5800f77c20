"""A valid training job, and the problems of variants of it."""

from dataclasses import replace
from typing import Any

from tests.core.plans import from_settings
from trainium_core.engines.sagemaker.jobs.job import TrainingJob
from trainium_core.engines.sagemaker.jobs.request import training_job_request
from trainium_core.jobs.problems import JobError
from trainium_core.plan import Plan
from trainium_core.problems import Problem

ROLE = "arn:aws:iam::123456789012:role/trn-training"
TRAINING_PLAN = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/three-days"

JOB = TrainingJob(
    name="trn-pilot--train",
    script="train.py",
    image="763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.30.0-ubuntu24.04",
    role_arn=ROLE,
    submitted_by="alice",
    source_url="s3://trn-bucket/source/0123456789abcdef/",
    output_url="s3://trn-bucket/output",
    cache_url="s3://trn-bucket/neuron-compile-cache",
    checkpoint_url="s3://trn-bucket/checkpoints/trn-pilot--train",
)


def small_plan(**settings: Any) -> Plan:
    """One trn1.2xlarge, which has two NeuronCores."""
    return from_settings(instance_type="trn1.2xlarge", **settings)


def job_in(plan: Plan, **changes: Any) -> TrainingJob:
    """JOB with the image of the plan's region and these changes."""
    return replace(JOB, **{"image": JOB.image.replace("us-west-2", plan.region)} | changes)


def job_problems(plan: Plan, **changes: Any) -> list[Problem]:
    try:
        training_job_request(plan, job_in(plan, **changes))
    except JobError as error:
        return list(error.problems)
    return []


def the_job_problem(plan: Plan, **changes: Any) -> Problem:
    (problem,) = job_problems(plan, **changes)
    return problem
