"""Rules for jobs on Amazon EKS. Rules about settings of every plan apply only if trn:stacks includes eks."""

from collections.abc import Iterator

from trainium_core.plan.rules.rule import Rule, rule_decorator
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

RULES: list[Rule] = []
rule = rule_decorator(RULES)


@rule("stacks", "eks_cluster")
def eks_cluster_is_named(plan: PlanValues) -> Iterator[Problem]:
    if "eks" in plan.stacks and plan.eks.cluster is None:
        fix = "set it; `aws eks list-clusters` lists the names"
        yield Problem(key="eks_cluster", got=None, allowed="the name of an existing EKS cluster", fix=fix)


@rule("stacks", "instance_type", "catalog")
def type_has_neuron_devices(plan: PlanValues) -> Iterator[Problem]:
    if "eks" in plan.stacks and plan.type.is_gpu:
        yield Problem(
            key="instance_type",
            got=plan.instance_type,
            allowed="with eks in trn:stacks: a type with Neuron devices",
            fix="choose another type, or deploy TrnClusterStack, which supports every type",
        )
