"""Decides which failed nodes are replaced. The controller replaces them, and a deployment waits for them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

WINDOW = timedelta(hours=24)
"""The period in which replacements are counted."""


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """The decision about the failed instances of a group.

    Attributes:
        limit: Maximum number of instances that are replaced within WINDOW.
        numbers: For each instance of the group that is to be replaced, or is already being replaced, its number among
            the replacements within the window, from 1.
    """

    limit: int
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])

    def replaces(self, instance_id: str) -> bool:
        return instance_id in self.numbers

    def sentence(self, instance_id: str) -> str:
        """`being replaced (1 of 2)`; otherwise why the failed instance is not replaced: empty if the limit is 0."""
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

    The decision about an instance depends on the failures and not on the time of the call, so a second call with the
    same failures decides the same. Instances that left the group count as replaced, even if a person terminated them.

    Args:
        failures: When each current or earlier instance reported its failure.
        instances: Instances of the group.
        leaving: Those of `instances` that Auto Scaling is already replacing.
        limit: Maximum number of replacements within WINDOW.
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
        # Instances that failed later and have left count too, so that a refused replacement stays refused.
        elif len(within) < limit:
            replaced.add(instance)
            numbers[instance] = len(within) + 1
    return Recovery(limit=limit, numbers=numbers)
