"""Which failed nodes are replaced: one decision, for the keeper that replaces them and the gate that waits."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

WINDOW = timedelta(hours=24)
"""What the number of replacements is counted in."""


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """What becomes of the failed instances of a group.

    limit: how many are replaced within WINDOW. numbers: the instances that are replaced, or being terminated already,
    each with how many there were within the window, itself included.
    """

    limit: int
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])

    def replaces(self, instance_id: str) -> bool:
        return instance_id in self.numbers

    def sentence(self, instance_id: str) -> str:
        """`being replaced (1 of 2)`, or why a failed instance is not; empty when none ever is."""
        number = self.numbers.get(instance_id)
        if number is not None:
            return f"being replaced ({number} of {self.limit})" if number <= self.limit else "being replaced"
        if self.limit == 0:
            return ""
        return f"not replaced: {self.limit} of {self.limit} replacements within 24 hours are used"


def plan_recovery(
    *, failures: Mapping[str, datetime], instances: Collection[str], leaving: Collection[str], limit: int
) -> Recovery:
    """Decide about every failed instance of a group.

    failures: when each instance, past or present, wrote that it failed. instances: the group's. leaving: those of them
    that Auto Scaling replaces already. limit: replacements within WINDOW; 0 for none.

    An instance is decided by what came before it and not by the time of the call: a second call decides the same.
    Instances that left the group count as replaced, also if a person ended them.
    """
    gone = {instance for instance in failures if instance not in instances or instance in leaving}
    replaced = set(gone)
    numbers: dict[str, int] = {}
    for instance, at in sorted(failures.items(), key=lambda failure: (failure[1], failure[0])):
        within = [other for other in replaced if other != instance and failures[other] > at - WINDOW]
        if instance in gone:
            earlier = [other for other in within if (failures[other], other) < (at, instance)]
            if instance in instances:
                numbers[instance] = len(earlier) + 1
        # Those that went although they failed later count as well: what was refused once stays refused.
        elif len(within) < limit:
            replaced.add(instance)
            numbers[instance] = len(within) + 1
    return Recovery(limit=limit, numbers=numbers)
