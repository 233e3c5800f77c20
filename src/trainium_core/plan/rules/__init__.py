"""Rules between the values of a plan: what AWS would refuse minutes later, or bill for without effect."""

from collections.abc import Collection, Iterable

from trainium_core.plan.rules.cluster import RULES as CLUSTER_RULES
from trainium_core.plan.rules.compile_cache import CACHE_RULES
from trainium_core.plan.rules.file_systems import FILE_SYSTEM_RULES
from trainium_core.plan.rules.hyperpod import RULES as HYPERPOD_RULES
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

_OF_ENGINES = (CLUSTER_RULES, SAGEMAKER_RULES, HYPERPOD_RULES, PCS_RULES)


def broken_rules(values: PlanValues, unusable: Collection[str] = ()) -> list[Problem]:
    """Every violated rule, except rules that read an unusable setting or one that an earlier rule refused.

    A violated rule of one engine does not prevent checks of another engine's rules.
    """
    refused = set(unusable)
    problems = _broken(_OF_EVERY_PLAN, values, refused)
    for rules in _OF_ENGINES:
        problems += _broken(rules, values, set(refused))
    return problems


def _broken(rules: Iterable[Rule], values: PlanValues, refused: set[str]) -> list[Problem]:
    """Adds the refused settings to `refused`."""
    problems: list[Problem] = []
    for known in rules:
        if refused.isdisjoint(known.reads):
            found = list(known.check(values))
            refused |= {problem.key for problem in found}
            problems += found
    return problems
