"""Refused settings of stacks other than the cluster; they apply only if the stack is requested."""

from typing import Any

import pytest

from tests.core.plans import OWN_VPC, problems_of, the_problem

EKS_CLUSTER = "arn:aws:eks:us-west-2:123456789012:cluster/pods"
TRAINING_PLAN = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/january"
KMS_KEY = "arn:aws:kms:us-west-2:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"
TRN2_3XLARGE: dict[str, Any] = {"instance_type": "trn2.3xlarge", "region": "sa-east-1"}
TRN2U: dict[str, Any] = {"instance_type": "trn2u.48xlarge", "region": "ap-south-2"}


@pytest.mark.parametrize(
    ("stacks", "settings"),
    [("sagemaker", TRN2_3XLARGE), ("hyperpod", TRN2U), ("hyperpod", {"instance_type": "trn1.2xlarge"})],
)
def test_type_missing_in_the_service_is_refused(stacks: str, settings: dict[str, Any]) -> None:
    problem = the_problem(stacks=stacks, **settings)
    assert (problem.key, problem.got) == ("instance_type", settings["instance_type"])
    assert problem.allowed.startswith(f"with {stacks} in trn:stacks: trn1.")


def test_hyperpod_cluster_cannot_sleep_at_its_end() -> None:
    problem = the_problem(stacks="hyperpod", ends="5d", ends_action="sleep")
    assert (problem.key, problem.got) == ("ends_action", "sleep")
    assert problem.fix == "remove trn:ends_action, or set it to destroy"
    assert problems_of(stacks="hyperpod", ends="5d", ends_action="destroy") == []
    assert problems_of(stacks="hyperpod", ends="5d") == []


def test_budget_stop_is_refused_for_hyperpod_cluster() -> None:
    problem = the_problem(stacks="hyperpod", budget_usd="500", budget_action="stop")
    assert (problem.key, problem.got) == ("budget_action", "stop")
    assert problems_of(stacks="hyperpod", budget_usd="500") == []


def test_sagemaker_budget_above_672_hours_is_refused() -> None:
    problem = the_problem(stacks="sagemaker", sagemaker_budget_hours=673)
    assert (problem.key, problem.got) == ("sagemaker_budget_hours", 673)
    assert "up to 672" in problem.allowed
    assert problems_of(stacks="sagemaker", sagemaker_budget_hours=672) == []


def test_security_group_of_eks_cluster_is_refused_with_slurm() -> None:
    problem = the_problem(hyperpod_eks_security_group="sg-0123456789abcdef0")
    assert problem.key == "hyperpod_eks_security_group"
    assert problem.allowed == "nothing with trn:hyperpod_orchestrator=slurm"


def test_eks_nodes_require_the_network_of_their_cluster() -> None:
    eks = {"stacks": "hyperpod", "hyperpod_orchestrator": "eks", "hyperpod_eks_cluster": EKS_CLUSTER}
    problem = the_problem(**eks)
    assert problem.key == "vpc_id"
    assert "cannot move later" in problem.fix
    assert problems_of(**eks, **OWN_VPC) == []


def test_training_plan_for_an_unsupported_type_is_refused() -> None:
    problem = the_problem(hyperpod_training_plan=TRAINING_PLAN, instance_type="trn1n.32xlarge")
    assert (problem.key, problem.got) == ("hyperpod_training_plan", TRAINING_PLAN)
    assert problem.allowed.endswith("training plans are sold for trn1.32xlarge, trn2.48xlarge")


IMAGE = "123456789012.dkr.ecr.us-west-2.amazonaws.com/team/training:1.0"


@pytest.mark.parametrize(
    ("key", "named"),
    [("hyperpod_training_plan", TRAINING_PLAN), ("sagemaker_kms_key", KMS_KEY), ("sagemaker_image", IMAGE)],
)
def test_arn_of_another_region_is_refused(key: str, named: str) -> None:
    problem = the_problem(**{key: named.replace("us-west-2", "us-east-1")})
    assert (problem.key, problem.allowed) == (key, "something in us-west-2, the plan's region")


@pytest.mark.parametrize(
    ("key", "raw"),
    [
        ("sagemaker_data", "corpus/wiki"),
        ("sagemaker_budget_hours", 0),
        ("sagemaker_capacity_retries", 21),
        ("hyperpod_controller_type", "ml.p5.48xlarge"),
    ],
)
def test_malformed_value_is_refused(key: str, raw: Any) -> None:
    problem = the_problem(**{key: raw})
    assert (problem.key, problem.got) == (key, raw)


def test_app_without_a_stack_is_refused() -> None:
    assert the_problem(stacks="").key == "stacks"


def test_eks_requires_its_orchestrating_cluster() -> None:
    problem = the_problem(hyperpod_orchestrator="eks")
    assert (problem.key, problem.got) == ("hyperpod_eks_cluster", None)


def test_eks_cluster_is_refused_with_slurm() -> None:
    assert the_problem(hyperpod_eks_cluster=EKS_CLUSTER).allowed == "nothing with trn:hyperpod_orchestrator=slurm"
