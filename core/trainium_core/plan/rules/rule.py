"""What a rule between settings is, and how modules list theirs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

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
