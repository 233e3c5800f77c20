"""Rules for a HyperPod cluster. Rules about settings of every plan apply only if trn:stacks includes hyperpod."""

from collections.abc import Iterator

from trainium_core.facts import facts
from trainium_core.plan.rules.pilot import END_SETTINGS, end_without_sleep
from trainium_core.plan.rules.rule import Rule, engine_supports_type, resource_in_region, rule_of
from trainium_core.plan.settings_by_key import SETTINGS, setting_value
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

RULES: list[Rule] = []
rule = rule_of(RULES)


@rule("stacks", "instance_type", "catalog")
def hyperpod_supports_type(plan: PlanValues) -> Iterator[Problem]:
    yield from engine_supports_type(facts()["hyperpod"]["instance_types"], plan, stack="hyperpod")


@rule("hyperpod_orchestrator", "hyperpod_eks_cluster")
def eks_requires_its_cluster(plan: PlanValues) -> Iterator[Problem]:
    if plan.hyperpod.orchestrator == "eks" and plan.hyperpod.eks_cluster is None:
        yield Problem(
            key="hyperpod_eks_cluster",
            got=None,
            allowed=SETTINGS["hyperpod_eks_cluster"].form.allowed,
            fix="give the ARN of the EKS cluster, or choose trn:hyperpod_orchestrator=slurm",
        )


@rule("hyperpod_orchestrator", "hyperpod_eks_cluster", "hyperpod_eks_security_group")
def slurm_excludes_eks_settings(plan: PlanValues) -> Iterator[Problem]:
    for key in ("hyperpod_eks_cluster", "hyperpod_eks_security_group"):
        got = setting_value(plan, key)
        if plan.hyperpod.orchestrator == "slurm" and got is not None:
            yield Problem(
                key=key,
                got=got,
                allowed="no value with trn:hyperpod_orchestrator=slurm",
                fix="remove it, or choose trn:hyperpod_orchestrator=eks",
            )


@rule("hyperpod_orchestrator", "vpc_id", "stacks")
def eks_requires_existing_vpc(plan: PlanValues) -> Iterator[Problem]:
    if "hyperpod" in plan.stacks and plan.hyperpod.orchestrator == "eks" and plan.network.vpc_id is None:
        yield Problem(
            key="vpc_id",
            got=None,
            allowed=SETTINGS["vpc_id"].form.allowed,
            fix="set trn:vpc_id to the VPC of the EKS cluster, and trn:subnet_id to a subnet in it; a HyperPod cluster "
            "cannot move to another VPC later",
        )


@rule("hyperpod_training_plan", "instance_type", "catalog")
def training_plans_are_sold_for_some_types(plan: PlanValues) -> Iterator[Problem]:
    sold: list[str] = facts()["hyperpod"]["training_plan_types"]
    if plan.hyperpod.training_plan is not None and plan.instance_type not in sold:
        yield Problem(
            key="hyperpod_training_plan",
            got=plan.hyperpod.training_plan,
            allowed=f"no value with {plan.instance_type}; training plans are sold for {', '.join(sold)}",
            fix="remove it, or choose one of these types",
        )


@rule("stacks", *END_SETTINGS)
def hyperpod_end_requires_destroy(plan: PlanValues) -> Iterator[Problem]:
    because, fix = "a HyperPod cluster cannot sleep", "remove it, or deploy TrnClusterStack instead"
    yield from end_without_sleep(plan, "hyperpod", because=because, idle_fix=fix)


@rule("hyperpod_training_plan", "hyperpod_eks_cluster", "region")
def named_resources_match_region(plan: PlanValues) -> Iterator[Problem]:
    for key in ("hyperpod_training_plan", "hyperpod_eks_cluster"):
        arn = setting_value(plan, key)
        if arn is not None:
            yield from resource_in_region(plan, key, arn, region=arn.split(":")[3])
