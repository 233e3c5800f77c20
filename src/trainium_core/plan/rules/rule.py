"""Rules between settings: their type, their registration, and problems that several modules share."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem, nearest

Check = Callable[[PlanValues], Iterator[Problem]]


@dataclass(frozen=True)
class Rule:
    """A rule between settings.

    Attributes:
        reads: Keys of the settings that the check reads. The check runs only if these have no problem yet.
        check: Yields the problems of a plan.
    """

    reads: tuple[str, ...]
    check: Check


def rule_decorator(rules: list[Rule]) -> Callable[..., Callable[[Check], Check]]:
    """A decorator that adds a check to a list of rules, with the keys of the settings that it reads."""

    def rule(*reads: str) -> Callable[[Check], Check]:
        def register(check: Check) -> Check:
            rules.append(Rule(reads, check))
            return check

        return register

    return rule


def engine_supports_type(types: Sequence[str], plan: PlanValues, *, stack: str) -> Iterator[Problem]:
    """If trn:stacks includes the stack, its engine must support the instance type."""
    if stack in plan.stacks and plan.instance_type not in types:
        yield Problem(
            key="instance_type",
            got=plan.instance_type,
            allowed=f"with {stack} in trn:stacks: {', '.join(types)}",
            nearest=nearest(plan.instance_type, types),
            fix="choose one of these, or deploy TrnClusterStack, which supports every type",
        )


def resource_in_region(plan: PlanValues, key: str, got: str, *, region: str) -> Iterator[Problem]:
    """`region`, the region of a resource, must be the plan's region."""
    if region != plan.region:
        yield Problem(
            key=key,
            got=got,
            allowed=f"a resource in {plan.region}, the plan's region",
            fix=f"name a resource in {plan.region}, or set trn:region to {region}",
        )
