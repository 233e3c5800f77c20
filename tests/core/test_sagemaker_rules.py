"""Refused training jobs: each problem is reported with value, allowed values, and fix."""

from typing import Any

import pytest

from tests.core.jobs import TRAINING_PLAN, job_in, small_plan, the_job_problem
from tests.core.plans import RESERVATION, from_settings
from trainium_core.engines.sagemaker.jobs.request import training_job_request
from trainium_core.jobs.problems import JobError

PLAN = from_settings(nodes=2)


@pytest.mark.parametrize("capacity", ["capacity-block", "reservation"])
def test_ec2_reservation_is_refused_for_a_job(capacity: str) -> None:
    problem = the_job_problem(from_settings(capacity=capacity, reservation_id=RESERVATION))
    assert (problem.key, problem.got) == ("capacity", capacity)
    assert "--training-plan" in problem.fix


@pytest.mark.parametrize(
    ("changes", "key", "says"),
    [
        ({"spot_wait_minutes": 48}, "--spot-wait-minutes", "trn:capacity=spot"),
        ({"warm_pool_minutes": 361}, "--warm-pool-minutes", "360"),
        (
            {"training_plan_arn": "arn:aws:sagemaker:us-east-1:123456789012:training-plan/x"},
            "--training-plan",
            "region",
        ),
        ({"inputs": {"train": "s3://bucket/x"}}, "--input", "ending with /"),
        ({"inputs": {"code": "s3://bucket/x/"}}, "--input", "another name"),
        ({"arguments": ("--note", "a\nb")}, "ARGUMENTS", "text of one line"),
        ({"arguments": ("a" * 257,)}, "ARGUMENTS", "256 characters"),
        ({"arguments": ("a",) * 101}, "ARGUMENTS", "100 arguments"),
        ({"environment": {"TEXT": "a" * 513}}, "--env", "512 characters"),
        ({"inputs": {f"input-{number}": "s3://bucket/x/" for number in range(20)}}, "--input", "19 inputs"),
    ],
)
def test_problem_is_reported_by_its_option(changes: dict[str, Any], key: str, says: str) -> None:
    problem = the_job_problem(PLAN, **changes)
    assert problem.key == key
    assert says in f"{problem.allowed} {problem.fix}"
    assert str(problem).startswith(f"{key}: got ")


@pytest.mark.parametrize("capacity", ["on-demand", "spot"])
def test_wait_for_spot_capacity_is_refused_in_a_training_plan(capacity: str) -> None:
    plan = from_settings(capacity=capacity)
    problem = the_job_problem(plan, training_plan_arn=TRAINING_PLAN, spot_wait_minutes=48)
    assert (problem.key, problem.allowed) == ("--spot-wait-minutes", "no value with --training-plan")
    assert "capacity=spot" not in problem.fix


def test_training_plan_requires_a_type_sold_in_plans() -> None:
    problem = the_job_problem(small_plan(), training_plan_arn=TRAINING_PLAN)
    assert (problem.key, problem.nearest) == ("--training-plan", "trn1.32xlarge")


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(JobError, match="The training job has 2 problems"):
        training_job_request(PLAN, job_in(PLAN, warm_pool_minutes=361, arguments=("a\nb",)))
