"""Rules for the values of a plan. They refuse, for example, what AWS would refuse, and settings without effect."""

from collections.abc import Collection, Iterable

from trainium_core.plan.rules.cluster import RULES as CLUSTER_RULES
from trainium_core.plan.rules.compile_cache import CACHE_RULES
from trainium_core.plan.rules.eks import RULES as EKS_RULES
from trainium_core.plan.rules.file_systems import FILE_SYSTEM_RULES
from trainium_core.plan.rules.instance_type import INSTANCE_TYPE_RULES
from trainium_core.plan.rules.jobs import JOB_RULES
from trainium_core.plan.rules.network import NETWORK_RULES
from trainium_core.plan.rules.pcs import RULES as PCS_RULES
from trainium_core.plan.rules.pilot import PILOT_RULES
from trainium_core.plan.rules.rule import Rule
from trainium_core.plan.rules.sagemaker import RULES as SAGEMAKER_RULES
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

_OF_EVERY_PLAN = (
    *INSTANCE_TYPE_RULES,
    *NETWORK_RULES,
    *CACHE_RULES,
    *FILE_SYSTEM_RULES,
    *PILOT_RULES,
    *JOB_RULES,
)

_OF_ENGINES = (CLUSTER_RULES, SAGEMAKER_RULES, PCS_RULES, EKS_RULES)


def broken_rules(values: PlanValues, unusable: Collection[str] = ()) -> list[Problem]:
    """The problems of all rules that can be checked.

    A rule is not checked if it reads an unusable setting, or a setting that an earlier rule refused. Settings that an
    engine's rule refused do not prevent the check of another engine's rules.

    Args:
        values: The values of the plan.
        unusable: Keys of settings without a valid value.
    """
    refused = set(unusable)
    problems = _broken(_OF_EVERY_PLAN, values, refused)
    for rules in _OF_ENGINES:
        problems += _broken(rules, values, set(refused))
    return problems


def _broken(rules: Iterable[Rule], values: PlanValues, refused: set[str]) -> list[Problem]:
    """The problems of the rules. Adds the keys of refused settings to `refused`."""
    problems: list[Problem] = []
    for rule in rules:
        if refused.isdisjoint(rule.reads):
            found = list(rule.check(values))
            refused |= {problem.key for problem in found}
            problems += found
    return problems
