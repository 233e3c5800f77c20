"""Whether a cluster is in use, and since when not: by what its nodes wrote of their NeuronCores, and by its job.

Each node writes one JSON object, USAGE_PREFIX/<instance id>.json. What is unknown of one node is unknown of all: nodes
end because nobody uses them, and never because nobody said that somebody does.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from trainium_runtime.facts import facts
from trainium_runtime.pilot_end import utc_text
from trainium_runtime.stored_record import one_line

State = Literal["in-use", "idle", "unknown"]

_LONGEST_DETAIL = 200
_LONGEST_IDLE = timedelta(days=3650)
_EARLIEST = 2020


@dataclass(frozen=True, kw_only=True)
class NodeUsage:
    """What one node wrote. at: when. idle: for how long before that it was. detail: who uses it, or why unknown."""

    state: State
    at: datetime
    idle: timedelta = timedelta()
    detail: str = ""

    @classmethod
    def from_json(cls, text: str) -> "NodeUsage":
        """Raises ValueError when the text is no such object."""
        try:
            raw: Any = json.loads(text)
            if raw["state"] not in get_args(State):
                raise ValueError(f"state is {raw['state']!r}, not one of {', '.join(get_args(State))}")
            at, idle = datetime.fromisoformat(raw["at"]), timedelta(seconds=float(raw["idle_seconds"]))
            if at.tzinfo is None or not timedelta() <= idle <= _LONGEST_IDLE or at.year < _EARLIEST:
                raise ValueError(f"not a moment and a duration: {at} and {idle}")
            return cls(
                state=raw["state"],
                at=at,
                idle=idle,
                detail=one_line(str(raw.get("detail", "")), _LONGEST_DETAIL),
            )
        except (KeyError, TypeError, AttributeError, OverflowError, json.JSONDecodeError) as error:
            raise ValueError(f"not the use of a node: {error!r}") from error


@dataclass(frozen=True, kw_only=True)
class LastJob:
    """The job that the nodes were given last. ended: when; None while it is not over."""

    job_id: str
    ended: datetime | None


@dataclass(frozen=True, kw_only=True)
class ClusterUsage:
    """idle_since: from when on no job and no NeuronCore was in use; None where one is, or where that is unknown.

    why: in words.
    """

    state: State
    why: str
    idle_since: datetime | None = None


def cluster_usage(
    instances: Collection[str], usages: Mapping[str, NodeUsage], job: LastJob | None, *, now: datetime
) -> ClusterUsage:
    """Of the nodes that there are. usages: by instance, of those that wrote what could be read."""
    if not instances:
        return ClusterUsage(state="unknown", why="there are no nodes")
    if job and job.ended is None:
        return ClusterUsage(state="in-use", why=f"{job.job_id} is not over")
    found = {instance: _current(usages.get(instance), now) for instance in sorted(instances)}
    for state in ("in-use", "unknown"):
        one = next(((name, usage) for name, usage in found.items() if usage.state == state), None)
        if one:
            return ClusterUsage(state=state, why=f"{one[0]}: {one[1].detail}")
    moments = [usage.at - usage.idle for usage in found.values()]
    since = max([*moments, job.ended] if job and job.ended else moments)
    return ClusterUsage(
        state="idle", why=f"no job and no NeuronCore in use since {utc_text(_minute(since))}", idle_since=since
    )


def _current(usage: NodeUsage | None, now: datetime) -> NodeUsage:
    """What was written, unless it is old, or from the future."""
    if usage is None:
        return NodeUsage(state="unknown", at=now, detail="has not written whether it is in use")
    known_for = timedelta(minutes=facts()["pilot"]["minutes_of_usage"])
    if abs(now - usage.at) > known_for:
        return NodeUsage(state="unknown", at=now, detail=f"wrote last at {utc_text(_minute(usage.at))} of its use")
    return usage


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)
