"""SageMaker training: the same plan as jobs, without machines to keep."""

from trainium_core.engines.engine import Engine
from trainium_core.engines.sagemaker.settings import SageMakerSettings

SAGEMAKER = Engine(
    key="sagemaker",
    construct_id="SageMakerTrainingStack",
    stack_class="stacks.sagemaker_training_stack:SageMakerTrainingStack",
    settings=SageMakerSettings,
    rules="trainium_core.engines.sagemaker.rules:RULES",
    warnings="trainium_core.engines.sagemaker.warnings:training_warnings",
    projections="trainium_core.engines.sagemaker.projections:PROJECTIONS",
    audited="trainium_core.engines.sagemaker.audited:LISTINGS",
    ends_with_pilot=False,
    workloads="trainium_core.engines.sagemaker.aws_workloads:WORKLOADS",
)
