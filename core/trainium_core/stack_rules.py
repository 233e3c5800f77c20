"""What must hold for the stacks beside the cluster. Only what is asked for is refused."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.problems import Problem, nearest
from trainium_core.rule import Rule, rule_of
from trainium_core.settings import SETTINGS
from trainium_core.stack_settings import STACKS

STACK_RULES: list[Rule] = []
rule = rule_of(STACK_RULES)


@rule("stacks")
def an_app_has_a_stack(plan: Plan) -> Iterator[Problem]:
    if not plan.stacks:
        fix = f"name one of {', '.join(STACKS)}, or leave the setting out"
        yield Problem(key="stacks", got="", allowed=SETTINGS["stacks"].form.allowed, fix=fix)


@rule("stacks", "instance_type", "catalog")
def type_is_one_that_sagemaker_has(plan: Plan) -> Iterator[Problem]:
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
def budget_is_no_longer_than_a_job_may_run(plan: Plan) -> Iterator[Problem]:
    if "sagemaker" not in plan.stacks:
        return
    longest = _training_facts()["time"]["longest_hours"]
    if plan.sagemaker_budget_hours > longest:
        yield Problem(
            key="sagemaker_budget_hours",
            got=plan.sagemaker_budget_hours,
            allowed=f"up to {longest}: SageMaker runs no job longer",
            fix=f"give {longest} or less; a longer training resumes from its checkpoints in a second job",
        )


@rule("hyperpod_orchestrator", "hyperpod_eks_cluster")
def eks_comes_with_its_cluster(plan: Plan) -> Iterator[Problem]:
    if plan.hyperpod_orchestrator == "eks" and plan.hyperpod_eks_cluster is None:
        yield Problem(
            key="hyperpod_eks_cluster",
            got=None,
            allowed=SETTINGS["hyperpod_eks_cluster"].form.allowed,
            fix="give the ARN of the EKS cluster, or choose trn:hyperpod_orchestrator=slurm",
        )
    if plan.hyperpod_orchestrator == "slurm" and plan.hyperpod_eks_cluster is not None:
        yield Problem(
            key="hyperpod_eks_cluster",
            got=plan.hyperpod_eks_cluster,
            allowed="nothing with trn:hyperpod_orchestrator=slurm",
            fix="remove it, or choose trn:hyperpod_orchestrator=eks",
        )


@rule("hyperpod_orchestrator", "vpc_id", "stacks")
def eks_nodes_join_the_vpc_of_their_cluster(plan: Plan) -> Iterator[Problem]:
    if "hyperpod" in plan.stacks and plan.hyperpod_orchestrator == "eks" and plan.vpc_id is None:
        yield Problem(
            key="vpc_id",
            got=None,
            allowed=SETTINGS["vpc_id"].form.allowed,
            fix="give trn:vpc_id and trn:subnet_id of the EKS cluster's own VPC: a HyperPod cluster cannot move later",
        )


@rule("hyperpod_training_plan", "instance_type", "catalog")
def training_plans_are_sold_for_some_types(plan: Plan) -> Iterator[Problem]:
    sold: list[str] = facts()["hyperpod"]["training_plan_types"]
    if plan.hyperpod_training_plan is not None and plan.instance_type not in sold:
        yield Problem(
            key="hyperpod_training_plan",
            got=plan.hyperpod_training_plan,
            allowed=f"nothing with {plan.instance_type}; training plans are sold for {', '.join(sold)}",
            fix="remove it, or choose one of these types",
        )


@rule("hyperpod_training_plan", "sagemaker_kms_key", "hyperpod_eks_cluster", "sagemaker_image", "region")
def what_is_named_is_in_the_region(plan: Plan) -> Iterator[Problem]:
    for key in ("hyperpod_training_plan", "sagemaker_kms_key", "hyperpod_eks_cluster"):
        arn: str | None = getattr(plan, key)
        if arn is not None and arn.split(":")[3] != plan.region:
            yield _of_another_region(plan, key, arn)
    image = plan.sagemaker_image
    if image is not None and image.split(".")[3] != plan.region:
        yield _of_another_region(plan, "sagemaker_image", image)


def _of_another_region(plan: Plan, key: str, got: str) -> Problem:
    return Problem(
        key=key,
        got=got,
        allowed=f"something in {plan.region}, the plan's region",
        fix="give one of this region, or set trn:region to its",
    )


def _types_of(stack: str) -> list[str]:
    return _training_facts()["types"]["training"] if stack == "sagemaker" else facts()["hyperpod"]["instance_types"]


def _training_facts() -> Mapping[str, Any]:
    # Loads all about training jobs, which a plan for a cluster does not need.
    from trainium_core.sagemaker.training_facts import training_facts

    return training_facts()
