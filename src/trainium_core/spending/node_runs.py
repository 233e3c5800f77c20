"""When each node ran, from the launches and terminations that Auto Scaling stores for six weeks.

If a node was launched earlier, only its end is stored.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

_LAUNCHED = re.compile(r"Launching a new EC2 instance: (i-[0-9a-f]+)")
_TERMINATED = re.compile(r"Terminating EC2 instance: (i-[0-9a-f]+)")


@dataclass(frozen=True, kw_only=True)
class ScalingActivity:
    """An entry in the history of an Auto Scaling group.

    Attributes:
        under_way: Whether the activity has not ended yet.
    """

    description: str
    began: datetime
    succeeded: bool
    under_way: bool = False


@dataclass(frozen=True, kw_only=True)
class NodeRun:
    """The time that a node ran.

    Attributes:
        ended: When its termination began; None while it runs, or if that is unknown.
        has_known_duration: Whether it still runs, or `ended` is known.
    """

    instance_id: str
    began: datetime
    ended: datetime | None
    has_known_duration: bool = True

    def duration(self, now: datetime) -> timedelta | None:
        """How long the node has run; None if its end is unknown."""
        return (self.ended or now) - self.began if self.has_known_duration else None


def node_runs(
    activities: Iterable[ScalingActivity],
    *,
    running: Collection[str],
    deleted: datetime | None,
    history_start: datetime,
) -> Iterator[NodeRun]:
    """The runs of the nodes in the history of a group, the oldest first.

    A node that was launched before the history and has no recorded termination is omitted.

    Args:
        activities: The history of the group.
        running: IDs of the running instances.
        deleted: When the group's stack was deleted, which is the end of its remaining nodes; None if the stack exists.
        history_start: Start of the history. The runs of nodes that were launched earlier begin at this time.
    """
    entries = list(activities)
    # A node is not billed once its termination has begun.
    ends = dict(_instances((entry for entry in entries if entry.succeeded or entry.under_way), _TERMINATED))
    launched = dict(_instances((entry for entry in entries if entry.succeeded), _LAUNCHED))
    earlier = {instance: history_start for instance in ends if instance not in launched}
    for instance_id, began in sorted((launched | earlier).items(), key=lambda launch: launch[1]):
        ended = ends.get(instance_id) or (None if instance_id in running else deleted)
        is_known = ended is not None or instance_id in running
        yield NodeRun(instance_id=instance_id, began=began, ended=ended, has_known_duration=is_known)


def _instances(activities: Iterable[ScalingActivity], pattern: re.Pattern[str]) -> Iterator[tuple[str, datetime]]:
    for activity in activities:
        if match := pattern.search(activity.description):
            yield match[1], activity.began
