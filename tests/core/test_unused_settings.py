"""Warnings about settings that the stacks of a plan do not use. tests/stacks/test_settings.py shows which these are."""

from typing import Any

import pytest

from tests.core.plans import from_settings
from trainium_core.engines.registry import plan_warnings

TRAINING = {"stacks": "sagemaker"}
BOTH = {"stacks": "cluster,sagemaker"}


@pytest.mark.parametrize(
    ("settings", "key", "value", "warning"),
    [
        (TRAINING, "efs", "new", "SageMakerTrainingStack does not use it: remove it"),
        (TRAINING, "nodes", 2, None),
        (TRAINING, "pcs_min_nodes", 0, None),
        (
            TRAINING,
            "job_inputs",
            "s3://my-data/tokens",
            "SageMakerTrainingStack does not use it: name the data in trn:sagemaker_data",
        ),
        (
            TRAINING,
            "vpc_cidr",
            "10.50.0.0/16",
            "SageMakerTrainingStack does not use it: set trn:sagemaker_vpc, or remove it",
        ),
        ({**TRAINING, "sagemaker_vpc": "on"}, "vpc_cidr", "10.50.0.0/16", None),
        ({}, "pcs_min_nodes", 1, "TrnClusterStack does not use it: remove it"),
        (BOTH, "pcs_min_nodes", 1, "TrnClusterStack and SageMakerTrainingStack do not use it: remove it"),
        (BOTH, "node_recovery", "off", None),
        (BOTH, "sagemaker_vpc", "on", None),
        (BOTH, "efs", "new", "SageMakerTrainingStack does not use it"),
        (
            BOTH,
            "job_secrets",
            "arn:aws:ssm:us-west-2:123456789012:parameter/token",
            "SageMakerTrainingStack does not use it",
        ),
    ],
)
def test_setting_that_no_stack_uses_is_named(
    settings: dict[str, Any], key: str, value: Any, warning: str | None
) -> None:
    assert plan_warnings(from_settings(**settings, **{key: value})).get(key) == warning
