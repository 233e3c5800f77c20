"""The billed items of SageMakerTrainingStack and its jobs."""

from collections.abc import Iterator

from trainium_core.costs.items import CostItem, alarms_item, always, cost_item, network_items
from trainium_core.naming import CONSTRUCT_IDS
from trainium_core.plan import Plan

TRAINING = "sagemaker-training"
SPOT_TRAINING = "sagemaker-spot-training"
"""Products of the price list."""


def cost_items(plan: Plan) -> Iterator[CostItem]:
    jobs, kind = f"Jobs on ml.{plan.instance_type}", "AWS::SageMaker::TrainingJob"
    yield cost_item(plan, jobs, TRAINING, kind, "by use", instance_type=plan.instance_type)
    yield cost_item(plan, "S3 storage", "s3-storage", "AWS::S3::Bucket", "by use")
    if plan.sagemaker.vpc and plan.network.vpc_id is None:
        yield from always(network_items(plan, plan.network.egress or "none"))
    yield from alarms_item(plan, 1)


def cost_notes(_: Plan) -> Iterator[str]:
    billed = "jobs and warm pools are billed while they run"
    yield f"{CONSTRUCT_IDS['sagemaker']}: {billed}; `trn run` shows the maximum cost of a job"
