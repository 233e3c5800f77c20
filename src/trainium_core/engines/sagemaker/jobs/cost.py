"""What a training job costs: by the hour, and at most, if it runs as long as it may."""

from decimal import Decimal

from trainium_core.costs.estimate import Estimate, cost_lines
from trainium_core.costs.items import CostItem
from trainium_core.engines.sagemaker.costs import SPOT_TRAINING, TRAINING
from trainium_core.engines.sagemaker.jobs.job import TrainingJob, sagemaker_type
from trainium_core.engines.sagemaker.jobs.training_jobs import JobState
from trainium_core.plan import Plan
from trainium_core.prices.file import snapshot_prices
from trainium_core.prices.price import PricedItem, Prices
from trainium_core.prices.quotes import quotes

MINUTES_PER_HOUR = 60


def job_estimate(plan: Plan, job: TrainingJob, *, aws: Prices | None) -> Estimate:
    """`running_hour` is what an hour costs, `pilot` the most that the job can cost with its warm pool.

    Prices are the plan's own, else those of `aws`, else of the snapshot; one that no source has is unknown. With a
    training plan nothing is billed here: it is paid for.
    """
    items = () if job.training_plan_arn is not None else (_instances(plan, job),)
    found = quotes((item.item for item in items), own=plan.prices, aws=aws, snapshot=snapshot_prices())
    hours = Decimal(str(job.max_hours)) + Decimal(job.warm_pool_minutes) / MINUTES_PER_HOUR
    return Estimate(lines=cost_lines(items, found), hours=hours, unavailable=found.unavailable)


def usd_per_hour(plan: Plan, state: JobState, *, aws: Prices | None) -> Decimal | None:
    """What all instances of a job that was started cost by the hour; None where no source has a price for them.

    0 with a training plan: it is paid for.
    """
    if state.is_paid_for:
        return Decimal(0)
    product = SPOT_TRAINING if state.on_spot else TRAINING
    instance_type = state.instance_type.removeprefix(sagemaker_type(""))
    item = PricedItem(product=product, region=plan.region, instance_type=instance_type)
    price = quotes([item], own=plan.prices, aws=aws, snapshot=snapshot_prices()).prices.get(item)
    return None if price is None or price.usd is None else price.usd * state.instances


def cost_words(job: TrainingJob, estimated: Estimate) -> str:
    """The amounts for people; what is unknown is said to be."""
    if job.training_plan_arn is not None:
        return "the training plan is paid for"
    return f"per hour: {estimated.running_hour}; at most, in {estimated.hours:g} h: {estimated.pilot}"


def _instances(plan: Plan, job: TrainingJob) -> CostItem:
    product = SPOT_TRAINING if job.on_spot(plan) else TRAINING
    return CostItem(
        what=f"{plan.nodes} x {sagemaker_type(plan.instance_type)}",
        item=PricedItem(product=product, region=plan.region, instance_type=plan.instance_type),
        quantity=plan.nodes,
        billed="running",
        resource_type="AWS::SageMaker::TrainingJob",
    )
