"""One cluster at a glance: what is known of it from every side."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from trainium_core.clusters.cluster import Absence, Cluster
from trainium_core.nodes.report import Nodes, NodesReport, nodes_report
from trainium_core.stacks.events import StackEvent, StackEvents
from trainium_runtime.errors import UnavailableError
from trainium_runtime.usage import ClusterUsage

Answer = TypeVar("Answer")

_EVENTS = 3
"""How many of the stack's own events are shown."""


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """The job that the nodes have, or had last. status: in a word or two."""

    job_id: str
    status: str


@dataclass(frozen=True, kw_only=True)
class ClusterStatus:
    """nodes, usage, job: None where there are none. precompilation: the job of the host that compiles ahead, while
    that is there. absence: why there are no nodes, where there are none. events: of the stack itself, newest first.

    replacements: allowed in 24 h. not_read: what could not be asked, and why.
    """

    cluster: Cluster
    nodes: NodesReport | None = None
    replacements: int = 0
    usage: ClusterUsage | None = None
    job: JobStatus | None = None
    precompilation: JobStatus | None = None
    events: Sequence[StackEvent] = ()
    absence: Absence | None = None
    not_read: Sequence[str] = ()

    @property
    def is_well(self) -> bool:
        """Whether it is as it should be: asleep, to have no nodes, or with every node proven."""
        if self.cluster.state == "asleep":
            return True
        return self.nodes is not None and (self.nodes.asleep or self.nodes.verdict.state == "ready")


def cluster_status(
    cluster: Cluster,
    stack: str,
    *,
    nodes: Nodes,
    events: StackEvents,
    job: Callable[[], JobStatus | None],
    precompilation: Callable[[], JobStatus | None],
    usage: Callable[[Collection[str]], ClusterUsage | None],
    absence: Callable[[], Absence | None],
    replacements: int,
) -> ClusterStatus:
    """Ask for all of it; what has no answer is named. usage: of instances by their ids."""
    not_read = list[str]()

    def read_or_note(what: str, read: Callable[[], Answer]) -> Answer | None:
        try:
            return read()
        except UnavailableError as error:
            not_read.append(f"{what}: {error}")
            return None

    deployed = read_or_note("nodes", lambda: nodes.nodes(stack))
    all_events = read_or_note("events", lambda: events.stack_events(stack, after=None)) or ()
    instances = [node.instance_id for node in deployed.instances] if deployed else []
    return ClusterStatus(
        cluster=cluster,
        usage=read_or_note("use of the nodes", lambda: usage(instances)) if instances else None,
        nodes=nodes_report(deployed, replacements=replacements) if deployed else None,
        replacements=replacements,
        job=read_or_note("job", job),
        precompilation=read_or_note("job of the host", precompilation) if cluster.host_counts else None,
        absence=None if cluster.node_counts else read_or_note("why there are no nodes", absence),
        events=[event for event in reversed(all_events) if event.of_stack][:_EVENTS],
        not_read=tuple(not_read),
    )
