"""HyperPodStack: orchestrator, Slurm controller, and how nodes are bought and checked."""

from typing import Literal, get_args

from trainium_core.facts import facts
from trainium_core.setting_schema.forms import Choice, Switch
from trainium_core.setting_schema.setting import regional_arn, resource_id, section, setting

Orchestrator = Literal["slurm", "eks"]
ORCHESTRATORS: tuple[Orchestrator, ...] = get_args(Orchestrator)

_CONTROLLER_TYPES: tuple[str, ...] = tuple(facts()["hyperpod"]["controller_types"])


@section
class HyperPodSettings:
    """Settings of HyperPodStack. `eks_cluster` and `training_plan` are ARNs, `eks_security_group` is an ID."""

    orchestrator: Orchestrator = setting(
        "hyperpod_orchestrator",
        Choice(ORCHESTRATORS),
        default="slurm",
        meaning="orchestrator of the HyperPod cluster",
    )
    eks_cluster: str | None = setting(
        "hyperpod_eks_cluster",
        regional_arn("eks", "cluster/[A-Za-z0-9_-]+", "the ARN of an EKS cluster"),
        default=None,
        meaning="EKS cluster that orchestrates the HyperPod cluster, already prepared for HyperPod",
    )
    eks_security_group: str | None = setting(
        "hyperpod_eks_security_group",
        resource_id("sg", "a security group"),
        default=None,
        meaning="cluster security group of the EKS cluster, which the nodes join; `aws eks describe-cluster` shows it",
    )
    controller_type: str = setting(
        "hyperpod_controller_type",
        Choice(_CONTROLLER_TYPES),
        default=_CONTROLLER_TYPES[0],
        meaning="instance type of the Slurm controller",
    )
    training_plan: str | None = setting(
        "hyperpod_training_plan",
        regional_arn("sagemaker", "training-plan/.+", "the ARN of a SageMaker training plan"),
        default=None,
        default_text="none: on demand",
        meaning="training plan for the HyperPod nodes, bought for the target resource hyperpod-cluster",
    )
    deep_health_checks: bool = setting(
        "hyperpod_deep_health_checks",
        Switch(),
        default=True,
        meaning="whether SageMaker runs deep health checks on new nodes before they are used",
    )
