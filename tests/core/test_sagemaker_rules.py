"""What a training job may not be: each mistake is reported with what was given, what is allowed, and what to do."""

from typing import Any

import pytest

from tests.core.jobs import JOB, TRAINING_PLAN, job_in, job_problems, small_plan, the_job_problem
from tests.core.plans import RESERVATION, from_settings
from trainium_core.engines.sagemaker.jobs.request import training_job_request
from trainium_core.jobs.problems import JobError
from trainium_core.problems import PlanError

PLAN = from_settings(nodes=2)


def test_a_good_job_has_no_problem() -> None:
    assert job_problems(PLAN) == []


@pytest.mark.parametrize(("name", "region"), [("trn2u.48xlarge", "ap-south-2"), ("trn2.3xlarge", "sa-east-1")])
def test_a_type_without_training_jobs_is_refused_with_the_nearest(name: str, region: str) -> None:
    problem = the_job_problem(from_settings(instance_type=name, region=region))
    assert (problem.key, problem.got, problem.nearest) == ("instance_type", name, "trn2.48xlarge")
    assert "TrnClusterStack" in problem.fix


@pytest.mark.parametrize("capacity", ["capacity-block", "reservation"])
def test_what_ec2_reserved_is_of_no_use_to_a_job(capacity: str) -> None:
    problem = the_job_problem(from_settings(capacity=capacity, reservation_id=RESERVATION))
    assert (problem.key, problem.got) == ("capacity", capacity)
    assert "--training-plan" in problem.fix


@pytest.mark.parametrize(
    ("changes", "key", "says"),
    [
        ({"spot": True, "checkpoint_url": None}, "--checkpoints", "begins anew"),
        ({"max_wait_hours": 48}, "--max-wait-hours", "--spot"),
        ({"spot": True, "max_hours": 10, "max_wait_hours": 9}, "--max-wait-hours", "10 or more"),
        ({"max_hours": 673}, "--max-hours", "resumes from its checkpoints"),
        ({"max_hours": 0}, "--max-hours", "672"),
        ({"max_hours": float("nan")}, "--max-hours", "672"),
        ({"warm_pool_minutes": 361}, "--warm-pool-minutes", "360"),
        ({"warm_pool_minutes": -1}, "--warm-pool-minutes", "360"),
        ({"warm_pool_minutes": 5, "spot": True}, "--warm-pool-minutes", "keeps no spot"),
        ({"training_plan_arn": TRAINING_PLAN, "spot": True}, "--spot", "paid"),
        (
            {"training_plan_arn": "arn:aws:sagemaker:us-east-1:123456789012:training-plan/x"},
            "--training-plan",
            "region",
        ),
        ({"training_plan_arn": "my-plan"}, "--training-plan", "region"),
        ({"subnet_ids": ("subnet-1",)}, "--security-group", "together"),
        ({"security_group_ids": ("sg-1",)}, "--subnet", "together"),
        ({"output_url": "https://bucket/x"}, "--output-url", "s3://"),
        ({"inputs": {"train": "bucket/x"}}, "--input train", "s3://"),
        ({"inputs": {"code": "s3://bucket/x"}}, "--input", "another name"),
        ({"name": "my-job"}, "--name", "trn-pilot--NAME"),
        ({"name": "trn-pilot--"}, "--name", "trn-pilot--NAME"),
        ({"name": "trn-pilot--a_b"}, "--name", "trn-pilot--NAME"),
        ({"name": f"trn-pilot--{'x' * 53}"}, "--name", "leave out 1 of its 64"),
        ({"image": "bogus"}, "--image", "ACCOUNT.dkr.ecr.us-west-2.amazonaws.com/NAME:TAG"),
        ({"image": "docker.io/library/python:3"}, "--image", "push the image to ECR"),
        ({"image": JOB.image.partition(":")[0]}, "--image", "with the tag or digest"),
        ({"image": JOB.image.replace("us-west-2", "us-east-1")}, "--image", "push it to ECR in us-west-2"),
    ],
)
def test_a_mistake_is_reported_by_its_option(changes: dict[str, Any], key: str, says: str) -> None:
    problem = the_job_problem(PLAN, **changes)
    assert problem.key == key
    assert says in f"{problem.allowed} {problem.fix}"
    assert str(problem).startswith(f"{key}: got ")


def test_a_tag_that_aws_has_not_published_comes_with_the_nearest() -> None:
    problem = the_job_problem(PLAN, image="2.9.0-neuronx-py312-sdk2.30.0-ubuntu22.04")
    assert problem.nearest == "2.9.0-neuronx-py312-sdk2.30.0-ubuntu24.04"


def test_a_training_plan_is_for_the_types_that_are_sold_in_plans() -> None:
    problem = the_job_problem(small_plan(), training_plan_arn=TRAINING_PLAN)
    assert (problem.key, problem.nearest) == ("--training-plan", "trn1.32xlarge")


def test_all_mistakes_are_reported_at_once_those_of_the_plan_by_their_setting() -> None:
    plan = from_settings(instance_type="trn2.3xlarge", region="sa-east-1")
    with pytest.raises(PlanError) as raised:
        training_job_request(plan, job_in(plan, max_hours=0, output_url="x"))
    assert isinstance(raised.value, JobError)
    message = str(raised.value)
    assert message.startswith("The training job has 3 problems; nothing was started.")
    assert "\n  trn:instance_type: got 'trn2.3xlarge'" in message
    assert "\n  --max-hours: got 0" in message


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"hyperparameters": {"lr": "0.1\n"}}, "hyperparameter lr"),
        ({"arguments": ("--note", "a\nb")}, "an argument of the script"),
    ],
    ids=["hyperparameter", "argument"],
)
def test_a_line_break_is_refused_as_sagemaker_would(changes: dict[str, Any], key: str) -> None:
    problem = the_job_problem(PLAN, **changes)
    assert (problem.key, problem.allowed) == (key, "text of one line")
