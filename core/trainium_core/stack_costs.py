"""What AWS bills all stacks of trn:stacks for: the cluster, and those beside it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from trainium_core.cost_items import CostItem, cost_item, cost_items, network_items
from trainium_core.naming import HYPERPOD_STACK_NAME, TRAINING_STACK_NAME
from trainium_core.plan import Plan
from trainium_core.prices import HYPERPOD, SAGEMAKER_TRAINING

_CLUSTER = "AWS::SageMaker::Cluster"


def stack_cost_items(plan: Plan) -> tuple[CostItem, ...]:
    """The items of every stack; what several are billed for by use is one item."""
    items = [item for stack in plan.stacks for item in _ITEMS[stack](plan)]
    by_use = dict.fromkeys(item for item in items if item.billed == "by use")
    return (*(item for item in items if item.billed != "by use"), *by_use) if len(plan.stacks) > 1 else tuple(items)


def stack_cost_notes(plan: Plan) -> Iterator[str]:
    """What one must know of an estimate of the stacks beside the cluster."""
    if "sagemaker" in plan.stacks:
        yield (
            f"{TRAINING_STACK_NAME}: jobs are billed while they run; `trn sagemaker run` shows what one costs at most"
        )
    if "hyperpod" in plan.stacks:
        yield f"{HYPERPOD_STACK_NAME} is billed whether nodes of the cluster run or not: `trn sleep` does not reach it"
        if plan.hyperpod.training_plan is not None:
            yield "the training plan is paid for when it is bought, and not in this estimate"
        if plan.hyperpod.eks_cluster is not None:
            yield "the EKS cluster is yours, and not in this estimate"


def _of_training(plan: Plan) -> Iterator[CostItem]:
    jobs, kind = f"Jobs on ml.{plan.instance_type}", "AWS::SageMaker::TrainingJob"
    yield cost_item(plan, jobs, SAGEMAKER_TRAINING, kind, "by use", instance_type=plan.instance_type)
    yield cost_item(plan, "S3 storage", "s3-storage", "AWS::S3::Bucket", "by use")
    if plan.sagemaker.vpc and plan.network.vpc_id is None:
        yield from _always(network_items(plan, plan.network.egress or "none"))


def _of_hyperpod(plan: Plan) -> Iterator[CostItem]:
    if plan.hyperpod.training_plan is None:
        yield _hyperpod_instances(plan, plan.nodes, plan.instance_type)
    if plan.hyperpod.orchestrator == "slurm":
        yield _hyperpod_instances(plan, 1, plan.hyperpod.controller_type.removeprefix("ml."))
    size = plan.nodes * plan.root_volume_gib
    volumes = f"{plan.nodes} x {plan.root_volume_gib} GiB HyperPod volume"
    yield cost_item(plan, volumes, "sagemaker-hyperpod-storage", _CLUSTER, "always", size)
    yield cost_item(plan, "S3 storage", "s3-storage", "AWS::S3::Bucket", "by use")
    if plan.network.vpc_id is None:
        yield from _always(network_items(plan, plan.network.egress or "nat-gateway"))


def _always(items: Iterable[CostItem]) -> Iterator[CostItem]:
    """Only the cluster sleeps."""
    for item in items:
        yield replace(item, billed="always") if item.billed == "running" else item


def _hyperpod_instances(plan: Plan, count: int, instance_type: str) -> CostItem:
    what = f"{count} x ml.{instance_type}, HyperPod"
    return cost_item(plan, what, HYPERPOD, _CLUSTER, "always", count, instance_type)


_ITEMS: Mapping[str, Callable[[Plan], Iterable[CostItem]]] = {
    "cluster": cost_items,
    "sagemaker": _of_training,
    "hyperpod": _of_hyperpod,
}
