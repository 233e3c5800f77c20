"""SageMakerTrainingStack, PcsStack and EksJobsStack with representative plans."""

from typing import Any

from stacks.eks_jobs_stack import EksJobsStack
from stacks.pcs_stack import PcsStack
from stacks.sagemaker_training_stack import SageMakerTrainingStack
from tests.constructs.plans import reserved
from tests.constructs.synth import EXISTING_NETWORK, Template
from tests.constructs.training import (
    KMS_KEY,
    eks_template,
    pcs_template,
    training_template,
)

TRAINING: dict[str, dict[str, Any]] = {
    "training": {},
    "training-vpc": {"sagemaker_vpc": True, "sagemaker_report_email": "ml@example.com"},
    "training-nat": {
        "sagemaker_vpc": True,
        "egress": "nat-gateway",
        "sagemaker_data": "s3://corpus/wiki",
        "sagemaker_max_instances": 4,
        "sagemaker_image": "123456789012.dkr.ecr.us-west-2.amazonaws.com/team/training:1.0",
    },
    "training-own-vpc": {
        "sagemaker_vpc": True,
        **EXISTING_NETWORK,
        "cache_bucket": "my-cache",
        "sagemaker_data": "s3://c0rpus",
    },
    "training-key": {
        "instance_type": "trn2.48xlarge",
        "region": "us-east-2",
        "sagemaker_kms_key": KMS_KEY.replace("us-west-2", "us-east-2"),
        "sagemaker_output_at_destroy": "retain",
        "cache_at_destroy": "retain",
    },
}
_IMAGE = {"pcs_ami": "ami-0123456789abcdef0", "stacks": ("pcs",)}
PCS: dict[str, dict[str, Any]] = {
    "pcs": dict(_IMAGE),
    "pcs-image": {"stacks": ("pcs",)},
    "pcs-spot": {
        **_IMAGE,
        "capacity": "spot",
        "pcs_slurm_version": "25.11",
        "pcs_min_nodes": 1,
        "pcs_queues": ("short:10", "long"),
        "pcs_accounting": True,
        "egress": "nat-gateway",
        "fsx_lustre": 1200,
        "efs": "new",
        "ends": "5d",
        "ends_action": "destroy",
        "budget_usd": 500,
        "notify_email": "someone@example.com",
    },
    "pcs-block": {
        **_IMAGE,
        **EXISTING_NETWORK,
        **reserved("capacity-block"),
        "instance_type": "trn2.48xlarge",
        "region": "us-east-2",
        "capacity": "capacity-block",
        "secondary_interface_type": "efa-only",
        "pcs_login": False,
    },
    "pcs-interruptible": {
        **_IMAGE,
        **reserved("reservation"),
        "capacity": "reservation",
        "pcs_interruptible": True,
        "cache_bucket": "my-cache",
    },
}
EKS: dict[str, dict[str, Any]] = {"eks": {"stacks": ("eks",), "eks_cluster": "prod", "cache_at_destroy": "retain"}}
EVERY = [*TRAINING, *PCS, *EKS]
_SETTINGS = {**TRAINING, **PCS, **EKS}


def settings_of(name: str) -> dict[str, Any]:
    return _SETTINGS[name]


def engine_of(name: str) -> str:
    return "sagemaker" if name in TRAINING else "pcs" if name in PCS else "eks"


def stack_of(name: str) -> type[SageMakerTrainingStack] | type[PcsStack] | type[EksJobsStack]:
    return {"sagemaker": SageMakerTrainingStack, "pcs": PcsStack, "eks": EksJobsStack}[engine_of(name)]


def other_template(name: str) -> Template:
    template_of = {"sagemaker": training_template, "pcs": pcs_template, "eks": eks_template}[engine_of(name)]
    return template_of(**_SETTINGS[name])
