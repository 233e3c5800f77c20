"""The billed items of HyperPodStack."""

from collections.abc import Iterator

from trainium_core.costs.items import CostItem, alarms_item, always, cost_item, network_items
from trainium_core.naming import CONSTRUCT_IDS
from trainium_core.plan import Plan

_CLUSTER = "AWS::SageMaker::Cluster"
_PRODUCT = "sagemaker-hyperpod"


def cost_items(plan: Plan) -> Iterator[CostItem]:
    hyperpod = plan.hyperpod
    if hyperpod.training_plan is None:
        yield _instances(plan, plan.nodes, plan.instance_type)
    if hyperpod.orchestrator == "slurm":
        yield _instances(plan, 1, hyperpod.controller_type.removeprefix("ml."))
    size = plan.nodes * plan.root_volume_gib
    volumes = f"{plan.nodes} x {plan.root_volume_gib} GiB HyperPod volume"
    yield cost_item(plan, volumes, "sagemaker-hyperpod-storage", _CLUSTER, "always", size)
    yield cost_item(plan, "S3 storage", "s3-storage", "AWS::S3::Bucket", "by use")
    if plan.network.vpc_id is None:
        yield from always(network_items(plan, plan.network.egress or "nat-gateway"))
    yield from alarms_item(plan, int(plan.pilot.ends is not None))


def cost_notes(plan: Plan) -> Iterator[str]:
    hyperpod = plan.hyperpod
    yield f"{CONSTRUCT_IDS['hyperpod']} is billed until it is destroyed: `trn sleep` does not affect it"
    if hyperpod.training_plan is not None:
        yield "the training plan is prepaid, and not in this estimate"
    if hyperpod.eks_cluster is not None:
        yield "the EKS cluster already exists, and is not in this estimate"


def _instances(plan: Plan, count: int, instance_type: str) -> CostItem:
    what = f"{count} x ml.{instance_type}, HyperPod"
    return cost_item(plan, what, _PRODUCT, _CLUSTER, "always", count, instance_type)
