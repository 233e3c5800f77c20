"""Replaced resources with data are retained, and changed settings that keep the nodes replace no resource."""

from typing import Any, cast

import pytest
from aws_cdk import Stack
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from stacks.pcs_stack import PcsStack
from stacks.sagemaker_training_stack import SageMakerTrainingStack
from stacks.trn_cluster_stack import TrnClusterStack
from tests.constructs.synth import REGION, template_of
from trainium_core.engines.pcs.engine import PCS
from trainium_core.engines.sagemaker.engine import SAGEMAKER
from trainium_core.naming import STACK_NAME
from trainium_core.plan.settings_by_key import SETTINGS

DATA_TYPES = ("AWS::EFS::FileSystem", "AWS::FSx::FileSystem", "AWS::S3::Bucket")
NODE_TYPES = (
    "AWS::AutoScaling::AutoScalingGroup",
    "AWS::PCS::Cluster",
    "AWS::PCS::ComputeNodeGroup",
)

HARMLESS: dict[str, Any] = {
    "tags": {"team": "ml"},
    "cache_expiration_days": 30,
    "ends": "9d",
    "warning_hours": 12,
    "notify_email": "someone@example.com",
    "budget_usd": 500,
    "node_recovery": False,
}
"""Settings of every stack whose change must not terminate a running node or lose a file."""

OF_THE_CLUSTER: dict[str, Any] = {
    "budget_action": "stop",
    "node_timeout_minutes": 40,
    "nodes": 3,
    "quota_check": False,
    "suppress_checks": ("nvme",),
    "verification": "observe",
}
OF_PCS_ALWAYS: dict[str, Any] = {"stacks": ("pcs",), "pcs_ami": "ami-0123456789abcdef0"}
OF_PCS: dict[str, Any] = {
    "nodes": 3,
    "pcs_accounting": True,
    "pcs_idle_minutes": 5,
    "pcs_min_nodes": 1,
    "pcs_slurm_version": "25.11",
    "quota_check": False,
}
OF_TRAINING: dict[str, Any] = {
    "sagemaker_max_runtime_hours": 12,
    "sagemaker_max_instances": 4,
    "sagemaker_report_email": "someone@example.com",
}


def create_only(resource: dict[str, Any]) -> dict[str, Any]:
    """The properties whose change makes CloudFormation replace the resource, by its registry schema."""
    if resource["Type"].startswith("Custom::"):
        return {}
    schema = cast(dict[str, Any], PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, resource["Type"]).schema)  # pyright: ignore[reportUnknownMemberType]
    paths = [*schema.get("createOnlyProperties", []), *schema.get("conditionalCreateOnlyProperties", [])]
    properties = resource.get("Properties", {})
    return {name: properties[name] for path in paths if (name := path.split("/")[2]) in properties}


STACKS: dict[str, tuple[type[Stack], str]] = {
    "cluster": (TrnClusterStack, STACK_NAME),
    "pcs": (PcsStack, PCS.construct_id),
    "training": (SageMakerTrainingStack, SAGEMAKER.construct_id),
}


def resources(stack: str, **settings: Any) -> dict[str, Any]:
    kind, construct_id = STACKS[stack]
    return template_of(kind, construct_id, settings).resources()


@pytest.mark.parametrize(
    ("stack", "settings", "replaceable"),
    [
        ("cluster", {"fsx_lustre": 1200, "efs": "new"}, {*DATA_TYPES}),
        ("pcs", OF_PCS_ALWAYS, {"AWS::S3::Bucket"}),
        ("training", {}, {"AWS::S3::Bucket"}),
    ],
    ids=STACKS,
)
def test_replaced_resources_with_data_are_retained(stack: str, settings: dict[str, Any], replaceable: set[str]) -> None:
    with_data = [resource for resource in resources(stack, **settings).values() if resource["Type"] in DATA_TYPES]
    assert with_data
    can_be_replaced = [resource for resource in with_data if create_only(resource)]
    assert {resource["Type"] for resource in can_be_replaced} == replaceable
    assert {resource["UpdateReplacePolicy"] for resource in can_be_replaced} <= {"Retain"}


@pytest.mark.parametrize(
    ("stack", "settings"),
    [("cluster", OF_THE_CLUSTER), ("pcs", OF_PCS), ("training", OF_TRAINING)],
    ids=STACKS,
)
def test_setting_that_keeps_nodes_replaces_nothing(stack: str, settings: dict[str, Any]) -> None:
    changed = {**HARMLESS, **settings}
    assert not [key for key in changed if SETTINGS[key].replaces_nodes]
    always = OF_PCS_ALWAYS if stack == "pcs" else {}
    before, after = resources(stack, **always), resources(stack, **always, **changed)
    assert before != after
    assert not [name for name in before if name not in after and before[name]["Type"] in (*DATA_TYPES, *NODE_TYPES)]
    replaced = [name for name in before.keys() & after.keys() if create_only(before[name]) != create_only(after[name])]
    assert replaced == []
