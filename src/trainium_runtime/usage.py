"""Whether a cluster is in use, and if not, since when, from the usage reports of its nodes and from its job.

If the usage of one node is unknown, that of the cluster is unknown: nodes must not be stopped for lack of information.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainium_runtime.facts import facts
from trainium_runtime.pilot_end import utc_text
from trainium_wire.usage import NodeUsage, State


@dataclass(frozen=True, kw_only=True)
class LastJob:
    """The last job of the nodes.

    Attributes:
        ended: When it ended; None until then.
        result: Its result; empty until then.
    """

    job_id: str
    ended: datetime | None = None
    result: str = ""


@dataclass(frozen=True, kw_only=True)
class ClusterUsage:
    """The usage of a cluster.

    Attributes:
        why: A sentence for people.
        idle_since: Since when no job was running and no NeuronCore in use. None if in use or unknown.
    """

    state: State
    why: str
    idle_since: datetime | None = None


def cluster_usage(
    instances: Collection[str], usages: Mapping[str, NodeUsage], job: LastJob | None, *, now: datetime
) -> ClusterUsage:
    """The usage of the current nodes.

    Args:
        usages: Readable reports by instance.
    """
    if not instances:
        return ClusterUsage(state="unknown", why="there are no nodes")
    if job and job.ended is None:
        return ClusterUsage(state="in-use", why=f"{job.job_id} has not ended")
    reports = {instance: _current(usages.get(instance), now) for instance in sorted(instances)}
    for state in ("in-use", "unknown"):
        first = next(((name, usage) for name, usage in reports.items() if usage.state == state), None)
        if first:
            return ClusterUsage(state=state, why=f"{first[0]}: {first[1].detail}")
    moments = [usage.at - usage.idle for usage in reports.values()]
    since = max([*moments, job.ended] if job and job.ended else moments)
    return ClusterUsage(
        state="idle", why=f"no job and no NeuronCore in use since {utc_text(_minute(since))}", idle_since=since
    )


def _current(usage: NodeUsage | None, now: datetime) -> NodeUsage:
    """The report; `unknown` with the reason if there is none, or if it is old or from the future."""
    if usage is None:
        return NodeUsage(state="unknown", at=now, detail="has not reported whether it is in use")
    if not is_current(usage, now):
        return NodeUsage(state="unknown", at=now, detail=f"last reported its use at {utc_text(_minute(usage.at))}")
    return usage


def is_current(usage: NodeUsage, now: datetime) -> bool:
    """Whether a report is neither old nor from the future."""
    return abs(now - usage.at) <= timedelta(minutes=facts()["pilot"]["minutes_of_usage"])


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)
