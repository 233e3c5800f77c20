"""What must hold for the stacks beside the cluster. Only what is asked for is refused."""

from collections.abc import Iterator

from trainium_core.facts import facts
from trainium_core.plan.rules.rule import Rule, rule_of
from trainium_core.plan.settings import SETTINGS, setting_value
from trainium_core.plan.values import STACKS, PlanValues
from trainium_core.problems import Problem, nearest
from trainium_core.training_facts import training_facts

STACK_RULES: list[Rule] = []
rule = rule_of(STACK_RULES)


@rule("stacks")
def an_app_has_a_stack(plan: PlanValues) -> Iterator[Problem]:
    if not plan.stacks:
        fix = f"name one of {', '.join(STACKS)}, or leave the setting out"
        yield Problem(key="stacks", got="", allowed=SETTINGS["stacks"].form.allowed, fix=fix)


@rule("stacks", "instance_type", "catalog")
def type_is_one_that_sagemaker_has(plan: PlanValues) -> Iterator[Problem]:
    for stack in ("sagemaker", "hyperpod"):
        types = _types_of(stack) if stack in plan.stacks else [plan.instance_type]
        if plan.instance_type not in types:
            yield Problem(
                key="instance_type",
                got=plan.instance_type,
                allowed=f"with {stack} in trn:stacks: {', '.join(types)}",
                nearest=nearest(plan.instance_type, types),
                fix="choose one of these, or deploy TrnClusterStack, which takes every type",
            )


@rule("stacks", "sagemaker_budget_hours")
def budget_is_no_longer_than_a_job_may_run(plan: PlanValues) -> Iterator[Problem]:
    if "sagemaker" not in plan.stacks:
        return
    longest = training_facts()["time"]["longest_hours"]
    if plan.sagemaker.budget_hours > longest:
        yield Problem(
            key="sagemaker_budget_hours",
            got=plan.sagemaker.budget_hours,
            allowed=f"up to {longest}: SageMaker runs no job longer",
            fix=f"give {longest} or less; a longer training resumes from its checkpoints in a second job",
        )


@rule("hyperpod_orchestrator", "hyperpod_eks_cluster")
def eks_comes_with_its_cluster(plan: PlanValues) -> Iterator[Problem]:
    if plan.hyperpod.orchestrator == "eks" and plan.hyperpod.eks_cluster is None:
        yield Problem(
            key="hyperpod_eks_cluster",
            got=None,
            allowed=SETTINGS["hyperpod_eks_cluster"].form.allowed,
            fix="give the ARN of the EKS cluster, or choose trn:hyperpod_orchestrator=slurm",
        )
    if plan.hyperpod.orchestrator == "slurm" and plan.hyperpod.eks_cluster is not None:
        yield Problem(
            key="hyperpod_eks_cluster",
            got=plan.hyperpod.eks_cluster,
            allowed="nothing with trn:hyperpod_orchestrator=slurm",
            fix="remove it, or choose trn:hyperpod_orchestrator=eks",
        )


@rule("hyperpod_orchestrator", "vpc_id", "stacks")
def eks_nodes_join_the_vpc_of_their_cluster(plan: PlanValues) -> Iterator[Problem]:
    if "hyperpod" in plan.stacks and plan.hyperpod.orchestrator == "eks" and plan.network.vpc_id is None:
        yield Problem(
            key="vpc_id",
            got=None,
            allowed=SETTINGS["vpc_id"].form.allowed,
            fix="give trn:vpc_id and trn:subnet_id of the EKS cluster's own VPC: a HyperPod cluster cannot move later",
        )


@rule("hyperpod_training_plan", "instance_type", "catalog")
def training_plans_are_sold_for_some_types(plan: PlanValues) -> Iterator[Problem]:
    sold: list[str] = facts()["hyperpod"]["training_plan_types"]
    if plan.hyperpod.training_plan is not None and plan.instance_type not in sold:
        yield Problem(
            key="hyperpod_training_plan",
            got=plan.hyperpod.training_plan,
            allowed=f"nothing with {plan.instance_type}; training plans are sold for {', '.join(sold)}",
            fix="remove it, or choose one of these types",
        )


@rule("hyperpod_training_plan", "sagemaker_kms_key", "hyperpod_eks_cluster", "sagemaker_image", "region")
def what_is_named_is_in_the_region(plan: PlanValues) -> Iterator[Problem]:
    for key in ("hyperpod_training_plan", "sagemaker_kms_key", "hyperpod_eks_cluster"):
        arn: str | None = setting_value(plan, key)
        if arn is not None and arn.split(":")[3] != plan.region:
            yield _of_another_region(plan, key, arn)
    image = plan.sagemaker.image
    if image is not None and image.split(".")[3] != plan.region:
        yield _of_another_region(plan, "sagemaker_image", image)


def _of_another_region(plan: PlanValues, key: str, got: str) -> Problem:
    return Problem(
        key=key,
        got=got,
        allowed=f"something in {plan.region}, the plan's region",
        fix="give one of this region, or set trn:region to its",
    )


def _types_of(stack: str) -> list[str]:
    return training_facts()["types"]["training"] if stack == "sagemaker" else facts()["hyperpod"]["instance_types"]
