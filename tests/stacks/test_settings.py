"""A changed setting changes the template of each stack, or a warning or a refusal names the setting."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from aws_cdk import Stack

from stacks.eks_jobs_stack import EksJobsStack
from stacks.pcs_stack import PcsStack
from stacks.sagemaker_training_stack import SageMakerTrainingStack
from stacks.trn_cluster_stack import TrnClusterStack
from tests.constructs.synth import EXISTING_NETWORK, Json, a_plan, template_of
from tests.core.plans import EXISTING_EFS, EXISTING_LUSTRE
from trainium_core.engines.registry import stack_warnings
from trainium_core.naming import CONSTRUCT_IDS
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.problems import PlanError

IMAGE = {"ami": "ami-0123456789abcdef0"}
RESERVED = {"capacity": "reservation", "reservation_id": "cr-0123456789abcdef0"}

CHANGED: Mapping[str, Any] = {
    "ami": "ami-0123456789abcdef0",
    "availability_zone_id": "usw2-az2",
    "budget_action": "stop",
    "budget_usd": 500,
    "cache_access": "read",
    "cache_at_destroy": "retain",
    "cache_bucket": "my-cache",
    "cache_expiration_days": 30,
    "capacity": "spot",
    "cloudwatch_metrics": "cluster",
    "cluster_name": "other",
    "dns_servers": ("10.0.0.2",),
    "efs": "new",
    "efs_security_group": "sg-0fedcba9876543211",
    "egress": "vpc-endpoints",
    "eks_cluster": "other",
    "eks_devices": "claim",
    "eks_image": "image:1",
    "eks_namespace": "training",
    "eks_service_account": "trainer",
    "ends": "9d",
    "ends_action": "destroy",
    "file_systems_at_destroy": "retain",
    "fsx_lustre": 1200,
    "fsx_lustre_mount_name": "other",
    "fsx_lustre_security_group": "sg-0123456789abcdef1",
    "idle_minutes": 60,
    "instance_type": "trn1n.32xlarge",
    "internode_ssh": True,
    "job_checkpoints": "s3://my-models/checkpoints",
    "job_notices": True,
    "job_inputs": ("s3://my-data/tokens",),
    "job_secrets": ("arn:aws:ssm:us-west-2:123456789012:parameter/token",),
    "logical_neuroncore_config": 1,
    "metrics_port": 9400,
    "metrics_security_group": "sg-0123456789abcdef2",
    "neuron_software": "install",
    "node_generation": 3,
    "node_recovery": False,
    "node_replacements": 5,
    "node_timeout_minutes": 40,
    "nodes": 3,
    "notify_email": "someone@example.com",
    "pcs_accounting": True,
    "pcs_ami": "ami-0123456789abcdef2",
    "pcs_idle_minutes": 20,
    "pcs_interruptible": True,
    "pcs_login": False,
    "pcs_login_instance_type": "m7i.xlarge",
    "pcs_min_nodes": 1,
    "pcs_queues": ("trn", "urgent:10"),
    "pcs_slurm_version": "25.11",
    "placement_group": "mine",
    "quota_check": False,
    "region": "us-east-1",
    "reservation_id": "cr-0123456789abcdef1",
    "root_device_name": "/dev/xvda",
    "root_volume_gib": 600,
    "root_volume_initialization": 100,
    "root_volume_throughput": 300,
    "route_table_id": "rtb-0123456789abcdef1",
    "sagemaker_max_instances": 3,
    "sagemaker_data": "s3://my-data/tokens",
    "sagemaker_image": "123456789012.dkr.ecr.us-west-2.amazonaws.com/mine:1",
    "sagemaker_kms_key": "arn:aws:kms:us-west-2:123456789012:key/01234567-89ab-cdef-0123-456789abcdef",
    "sagemaker_max_runtime_hours": 12,
    "sagemaker_output_at_destroy": "retain",
    "sagemaker_report_email": "someone@example.com",
    "sagemaker_vpc": True,
    "secondary_interface_type": "efa-only",
    "setup_script": "echo done",
    "subnet_id": "subnet-0123456789abcdef1",
    "suppress_checks": ("lnc",),
    "tags": {"team": "ml"},
    "verification": "observe",
    "vpc_cidr": "10.50.0.0/16",
    "vpc_id": "vpc-0123456789abcdef1",
    "warning_hours": 12,
}
"""Another value for each setting."""

ENDS = {"ends": "8h", "ends_action": "destroy"}
REQUIRES: Mapping[str, Mapping[str, Any]] = {
    "budget_action": {"budget_usd": 500},
    "cache_access": {"cache_bucket": "my-cache"},
    "cache_bucket": {"cache_bucket": "her-cache"},
    "dns_servers": EXISTING_NETWORK,
    "efs_security_group": {**EXISTING_NETWORK, **EXISTING_EFS},
    "ends_action": {"ends": "8h"},
    "file_systems_at_destroy": {"efs": "new"},
    "fsx_lustre_mount_name": {**EXISTING_NETWORK, **EXISTING_LUSTRE},
    "fsx_lustre_security_group": {**EXISTING_NETWORK, **EXISTING_LUSTRE},
    "logical_neuroncore_config": {"instance_type": "trn2.48xlarge", "region": "us-east-2"},
    "egress": {"pcs_ami": "ami-0123456789abcdef1"},
    "metrics_security_group": {"metrics_port": 9400},
    "neuron_software": IMAGE,
    "notify_email": ENDS,
    "pcs_interruptible": RESERVED,
    "reservation_id": RESERVED,
    "root_device_name": IMAGE,
    "route_table_id": EXISTING_NETWORK,
    "subnet_id": EXISTING_NETWORK,
    "vpc_id": EXISTING_NETWORK,
    "warning_hours": ENDS,
}
"""What a setting requires."""

NOT_OF_STACKS = {
    "ami_parameter",  # for `trn image pin` and `trn preflight`
    "catalog",  # defines instance types
    "prices",  # for costs
    "project_id",  # the tag of the stack
    "stacks",
}

KINDS: Mapping[str, tuple[Callable[..., Stack], Mapping[str, Any]]] = {
    "cluster": (TrnClusterStack, {}),
    "pcs": (PcsStack, {"stacks": ("pcs",)}),
    "sagemaker": (SageMakerTrainingStack, {"stacks": ("sagemaker",)}),
    "eks": (EksJobsStack, {"stacks": ("eks",), "eks_cluster": "prod"}),
}
NOT_IN_TEMPLATES = {
    "cluster": set[str](),
    "pcs": {"ends_action"},  # confirms the only action that PcsStack accepts
    # Each training job has them, and not the stack.
    "sagemaker": {
        *("capacity", "instance_type", "logical_neuroncore_config", "root_volume_gib", "sagemaker_max_runtime_hours")
    },
    "eks": {"eks_devices", "eks_image", "instance_type", "logical_neuroncore_config", "nodes"},
}


def test_every_setting_has_another_value() -> None:
    assert {*CHANGED} | NOT_OF_STACKS == {*SETTINGS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", sorted(CHANGED))
def test_changed_setting_changes_the_template_or_is_named_in_a_message(kind: str, key: str) -> None:
    base = REQUIRES.get(key, {})
    changed = {**base, key: CHANGED[key]}
    if key not in NOT_IN_TEMPLATES[kind] and not is_named(kind, key, changed):
        assert resources(kind, base) != resources(kind, changed)


def is_named(kind: str, key: str, settings: Mapping[str, Any]) -> bool:
    """Whether a refusal of the plan names the setting, or a warning says what it does not do."""
    try:
        plan = a_plan(**{**KINDS[kind][1], **settings})
    except PlanError as refused:
        return key in [problem.key for problem in refused.problems]
    return bool(re.search("not (use|end) ", stack_warnings(plan, kind).get(key, "")))


def resources(kind: str, settings: Mapping[str, Any]) -> Json:
    """The resources of the stack, without the record of its settings, which changes with every setting."""
    stack, own = KINDS[kind]
    found = template_of(stack, CONSTRUCT_IDS[kind], {**own, **settings}).resources()
    return {name: resource for name, resource in found.items() if resource["Type"] != "AWS::SSM::Parameter"}
