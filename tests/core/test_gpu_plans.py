"""Plans with GPU types: their differences from plans with Neuron devices, and refused settings."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.core.fake_account import IMAGE, FakeAccount
from tests.core.findings import finding_of
from tests.core.plans import from_settings, the_problem
from trainium_core.aws.images import Image
from trainium_core.engines.registry import plan_warnings
from trainium_core.facts import facts
from trainium_core.jobs.job import new_job
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.request import JobRequest

PARAMETER = facts()["gpu_images"]["ssm_parameter"]
NEURON_PARAMETER = facts()["image"]["ssm_parameter"]
GPUS = {"instance_type": "p5.48xlarge"}
GPU_IMAGE = replace(
    IMAGE,
    name="Deep Learning OSS Nvidia Driver AMI GPU PyTorch 2.10 (Ubuntu 24.04) 20261009",
    description="Supported EC2 instances: G6, P5, P5e. Release notes: https://docs.aws.amazon.com/dlami/",
)


def test_gpu_type_has_its_own_default_image_and_framework() -> None:
    plan = from_settings(**GPUS)
    assert (plan.image, plan.ami) == (PARAMETER, None)
    assert plan.framework is not None
    assert plan.framework.stack == "cuda"
    assert plan.processes_per_node == 8
    assert "root_volume_gib" not in plan_warnings(plan.but(root_volume_gib=200))


@pytest.mark.parametrize(
    ("settings", "key", "allowed"),
    [
        ({"ami": NEURON_PARAMETER}, "ami", "an image for GPUs, which p5.48xlarge has"),
        ({"neuron_software": "install", "egress": "nat-gateway"}, "neuron_software", "image on p5.48xlarge"),
        ({"logical_neuroncore_config": 1}, "logical_neuroncore_config", "nothing on p5.48xlarge, which has GPUs"),
        ({"stacks": "pcs"}, "instance_type", "with pcs in trn:stacks: trn1.2xlarge"),
        ({"stacks": "sagemaker"}, "instance_type", "with sagemaker in trn:stacks: "),
    ],
)
def test_setting_that_gpu_types_do_not_support_is_refused(settings: dict[str, Any], key: str, allowed: str) -> None:
    problem = the_problem(**GPUS, **settings)
    assert problem.key == key
    assert str(problem.allowed).startswith(allowed)


def test_gpu_image_is_refused_for_neuron_devices() -> None:
    problem = the_problem(ami=PARAMETER)
    assert problem.allowed == "an image for Neuron devices, which trn1.32xlarge has"
    assert NEURON_PARAMETER in problem.fix


@pytest.mark.parametrize(
    ("image", "outcome", "says"),
    [
        (GPU_IMAGE, "pass", "PyTorch 2.10 (Ubuntu 24.04) 20261009) is available"),
        (replace(GPU_IMAGE, description="Supported EC2 instances: G6, P4d."), "warn", "lists g6, p4d, but not p5"),
        (replace(GPU_IMAGE, description=""), "pass", "is available"),
        (IMAGE, "fail", "is an image for Neuron devices"),
        (replace(GPU_IMAGE, owner="111122223333"), "warn", "belongs to account 111122223333"),
    ],
)
def test_image_of_gpu_type_is_checked(image: Image, outcome: str, says: str) -> None:
    finding = finding_of("image", FakeAccount(found_image=image), **GPUS)
    assert (finding.outcome, says in finding.found) == (outcome, True), finding.found


def test_image_with_unknown_content_is_a_warning() -> None:
    image = replace(GPU_IMAGE, name="mine")
    finding = finding_of("image", FakeAccount(found_image=image), **GPUS, ami=IMAGE.image_id)
    assert finding.outcome == "warn"
    assert "unknown whether" in finding.found


def test_job_on_gpus_runs_one_process_for_each() -> None:
    noon = datetime(2026, 11, 24, 12, tzinfo=UTC)
    job = new_job(from_settings(**GPUS), JobRequest(script=Path("train.py")), script="train.py", now=noon)
    assert (job.stack, job.processes_per_node) == ("cuda", 8)
    assert "--nproc_per_node=8 " in job.command
    with pytest.raises(JobError, match=r"allowed: cuda, on p5\.48xlarge"):
        new_job(from_settings(**GPUS), JobRequest(script=Path("t.py"), framework="xla"), script="t.py", now=noon)
