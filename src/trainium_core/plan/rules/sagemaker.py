"""Rules for SageMaker training jobs. Rules about settings of every plan apply only if trn:stacks includes sagemaker."""

from collections.abc import Iterator

from trainium_core.facts import training_facts
from trainium_core.plan.rules.rule import Rule, engine_supports_type, resource_in_region, rule_decorator
from trainium_core.plan.settings_by_key import setting_value
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

RULES: list[Rule] = []
rule = rule_decorator(RULES)


@rule("stacks", "instance_type", "catalog")
def sagemaker_supports_type(plan: PlanValues) -> Iterator[Problem]:
    yield from engine_supports_type(training_facts()["types"]["training"], plan, stack="sagemaker")


@rule("stacks", "sagemaker_max_runtime_hours")
def max_runtime_fits_longest_job(plan: PlanValues) -> Iterator[Problem]:
    if "sagemaker" not in plan.stacks:
        return
    longest = training_facts()["time"]["longest_hours"]
    if plan.sagemaker.max_runtime_hours > longest:
        yield Problem(
            key="sagemaker_max_runtime_hours",
            got=plan.sagemaker.max_runtime_hours,
            allowed=f"up to {longest} hours, the longest SageMaker training job",
            fix=f"set it to {longest} or less; a second job can resume from the checkpoints of the first",
        )


@rule("stacks", "sagemaker_max_instances", "nodes")
def queue_fits_a_job(plan: PlanValues) -> Iterator[Problem]:
    most = plan.sagemaker.max_instances
    if "sagemaker" in plan.stacks and most is not None and most < plan.nodes:
        yield Problem(
            key="sagemaker_max_instances",
            got=most,
            allowed=f"{plan.nodes} or more, because a job has trn:nodes instances; it would wait forever",
            fix=f"set it to {plan.nodes} or more, or remove it",
        )


@rule("sagemaker_kms_key", "sagemaker_image", "region")
def named_resources_match_region(plan: PlanValues) -> Iterator[Problem]:
    for key, separator in (("sagemaker_kms_key", ":"), ("sagemaker_image", ".")):
        name = setting_value(plan, key)
        if name is not None:
            yield from resource_in_region(plan, key, name, region=name.split(separator)[3])
