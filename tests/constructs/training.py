"""SageMakerTrainingStack and PcsStack as templates."""

from functools import cache
from typing import Any

from stacks.eks_jobs_stack import EksJobsStack
from stacks.pcs_stack import PcsStack
from stacks.sagemaker_training_stack import SageMakerTrainingStack
from tests.constructs.synth import Template, template_of
from trainium_core.engines.eks.engine import EKS
from trainium_core.engines.pcs.engine import PCS
from trainium_core.engines.sagemaker.engine import SAGEMAKER

KMS_KEY = "arn:aws:kms:us-west-2:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"


@cache
def training_template(**settings: Any) -> Template:
    """The template of SageMakerTrainingStack for `a_plan`, synthesised once for each set of settings."""
    return template_of(SageMakerTrainingStack, SAGEMAKER.construct_id, settings)


@cache
def eks_template(**settings: Any) -> Template:
    """The template of EksJobsStack for `a_plan`, synthesised once for each set of settings."""
    return template_of(EksJobsStack, EKS.construct_id, {**settings, "stacks": ("eks",)})


@cache
def pcs_template(**settings: Any) -> Template:
    """The template of PcsStack for `a_plan`, synthesised once for each set of settings."""
    return template_of(PcsStack, PCS.construct_id, {**settings, "stacks": ("pcs",)})
