"""When each node ran, by what its Auto Scaling group remembers: launches and terminations of the last six weeks.

Of a node that was launched before, it remembers when it ended.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

_LAUNCHED = re.compile(r"Launching a new EC2 instance: (i-[0-9a-f]+)")
_TERMINATED = re.compile(r"Terminating EC2 instance: (i-[0-9a-f]+)")


@dataclass(frozen=True, kw_only=True)
class ScalingActivity:
    """One entry of the group's history, with when it began. `under_way`: neither succeeded nor failed yet."""

    description: str
    began: datetime
    succeeded: bool
    under_way: bool = False


@dataclass(frozen=True, kw_only=True)
class NodeRun:
    """`ended`: None while it runs. `known`: whether its end, or that there is none, is known."""

    instance_id: str
    began: datetime
    ended: datetime | None
    known: bool = True

    def lasted(self, now: datetime) -> timedelta | None:
        """None if its end is not known."""
        return (self.ended or now) - self.began if self.known else None


def node_runs(
    activities: Iterable[ScalingActivity],
    *,
    running: Collection[str],
    deleted: datetime | None,
    remembered: datetime,
) -> Iterator[NodeRun]:
    """Each launch that succeeded, and each node that ended and was launched before that is remembered, oldest first.

    `running`: the instances that run now. `deleted`: when the group went, which is the end of what it still had.
    `remembered`: since when it remembers; what ran earlier is in no run.
    """
    entries = list(activities)
    # A node that is being terminated is not billed any more.
    ends = dict(_named((one for one in entries if one.succeeded or one.under_way), _TERMINATED))
    launched = dict(_named((one for one in entries if one.succeeded), _LAUNCHED))
    earlier = {instance: remembered for instance in ends if instance not in launched}
    for instance_id, began in sorted((launched | earlier).items(), key=lambda launch: launch[1]):
        ended = ends.get(instance_id) or (None if instance_id in running else deleted)
        known = ended is not None or instance_id in running
        yield NodeRun(instance_id=instance_id, began=began, ended=ended, known=known)


def _named(activities: Iterable[ScalingActivity], pattern: re.Pattern[str]) -> Iterator[tuple[str, datetime]]:
    for activity in activities:
        if found := pattern.search(activity.description):
            yield found[1], activity.began
