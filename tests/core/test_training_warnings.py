"""Warnings about settings that SageMaker's training jobs do not use."""

from typing import Any

import pytest

from tests.core.plans import from_settings
from trainium_core.engines.registry import plan_warnings

UNUSED = "SageMakerTrainingStack and its training jobs do not use it: remove it"
IN_A_VPC = "training jobs use it only in a VPC: set trn:sagemaker_vpc, or remove it"


@pytest.mark.parametrize(
    ("key", "value", "warning"),
    [
        ("ami", "ami-0123456789abcdef0", UNUSED),
        ("budget_usd", 500, UNUSED),
        ("efs", "new", UNUSED),
        ("fsx_lustre", 1200, UNUSED),
        ("idle_minutes", 60, UNUSED),
        ("node_recovery", "off", UNUSED),
        ("pcs_min_nodes", 1, UNUSED),
        ("root_volume_throughput", 300, UNUSED),
        ("egress", "nat-gateway", IN_A_VPC),
        ("vpc_cidr", "10.50.0.0/16", IN_A_VPC),
        ("nodes", 2, None),
        ("root_volume_gib", 600, None),
        ("cache_expiration_days", 30, None),
    ],
)
def test_setting_that_training_jobs_do_not_use_is_named(key: str, value: Any, warning: str | None) -> None:
    assert plan_warnings(from_settings(stacks="sagemaker", **{key: value})).get(key) == warning


def test_setting_of_a_vpc_is_used_by_training_jobs_in_a_vpc() -> None:
    plan = from_settings(stacks="sagemaker", sagemaker_vpc="on", egress="nat-gateway")
    assert "egress" not in plan_warnings(plan)


def test_cluster_beside_training_jobs_uses_its_settings_but_jobs_mount_nothing() -> None:
    warnings = plan_warnings(from_settings(stacks="cluster,sagemaker", node_recovery="off", efs="new"))
    assert "node_recovery" not in warnings
    assert warnings["efs"] == UNUSED
