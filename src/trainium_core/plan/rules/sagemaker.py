"""What must hold for training jobs of SageMaker. What concerns other settings counts only if trn:stacks has it."""

from collections.abc import Iterator

from trainium_core.facts import training_facts
from trainium_core.plan.rules.rule import Rule, in_the_region, rule_of, type_is_one_of
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

RULES: list[Rule] = []
rule = rule_of(RULES)


@rule("stacks", "instance_type", "catalog")
def type_is_one_that_sagemaker_has(plan: PlanValues) -> Iterator[Problem]:
    yield from type_is_one_of(training_facts()["types"]["training"], plan, stack="sagemaker")


@rule("stacks", "sagemaker_budget_hours")
def budget_is_no_longer_than_a_job_may_run(plan: PlanValues) -> Iterator[Problem]:
    if "sagemaker" not in plan.stacks:
        return
    longest = training_facts()["time"]["longest_hours"]
    if plan.sagemaker.budget_hours > longest:
        yield Problem(
            key="sagemaker_budget_hours",
            got=plan.sagemaker.budget_hours,
            allowed=f"up to {longest}: the longest SageMaker job",
            fix=f"give {longest} or less; a longer training resumes from its checkpoints in a second job",
        )


@rule("sagemaker_kms_key", "sagemaker_image", "region")
def what_is_named_is_in_the_region(plan: PlanValues) -> Iterator[Problem]:
    sagemaker = plan.sagemaker
    if sagemaker.kms_key is not None:
        yield from in_the_region(plan, "sagemaker_kms_key", sagemaker.kms_key, region=sagemaker.kms_key.split(":")[3])
    if sagemaker.image is not None:
        yield from in_the_region(plan, "sagemaker_image", sagemaker.image, region=sagemaker.image.split(".")[3])
