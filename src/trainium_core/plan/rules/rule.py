"""What a rule between settings is, how modules list theirs, and the problems that rules of several engines find."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem, nearest

Check = Callable[[PlanValues], Iterator[Problem]]


@dataclass(frozen=True)
class Rule:
    """A check that can be made once the settings it reads are readable."""

    reads: tuple[str, ...]
    check: Check


def rule_of(rules: list[Rule]) -> Callable[..., Callable[[Check], Check]]:
    """A decorator that adds a check to a list of rules, with the keys of the settings it reads."""

    def rule(*reads: str) -> Callable[[Check], Check]:
        def register(check: Check) -> Check:
            rules.append(Rule(reads, check))
            return check

        return register

    return rule


def type_is_one_of(types: Sequence[str], plan: PlanValues, *, stack: str) -> Iterator[Problem]:
    """That the instance type is one that the engine of a stack has, if trn:stacks has the stack."""
    if stack in plan.stacks and plan.instance_type not in types:
        yield Problem(
            key="instance_type",
            got=plan.instance_type,
            allowed=f"with {stack} in trn:stacks: {', '.join(types)}",
            nearest=nearest(plan.instance_type, types),
            fix="choose one of these, or deploy TrnClusterStack, which takes every type",
        )


def in_the_region(plan: PlanValues, key: str, got: str, *, region: str) -> Iterator[Problem]:
    """That what a setting names, which is in `region`, is where the plan is."""
    if region != plan.region:
        yield Problem(
            key=key,
            got=got,
            allowed=f"something in {plan.region}, the plan's region",
            fix="give one of this region, or set trn:region to its",
        )
