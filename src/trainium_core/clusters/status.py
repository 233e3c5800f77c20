"""The status of one cluster: stacks, nodes, jobs and use."""

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
"""The number of events of the stack itself that are shown."""


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """The current or last job of the nodes. status: one or two words."""

    job_id: str
    status: str


@dataclass(frozen=True, kw_only=True)
class ClusterStatus:
    """The status of one cluster.

    Attributes:
        nodes, usage, job: None if there are none.
        precompilation: Job of the precompile host; None without a host.
        absence: Why there are no nodes; None if there are some.
        events: Events of the stack itself, newest first.
        replacements: Failed nodes that may be replaced within 24 hours.
        not_read: What could not be read, and why.
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
    def is_healthy(self) -> bool:
        """Whether the cluster is asleep, has no nodes as intended, or has only proven nodes."""
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
    """Read the status. Parts without an answer are listed. usage: reads the use of instances by their IDs."""
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
    for_jobs = deployed is not None and deployed.for_jobs is not None
    return ClusterStatus(
        cluster=cluster,
        # Nodes that start with jobs do not report their use: their service ends idle ones.
        usage=read_or_note("use of the nodes", lambda: usage(instances)) if instances and not for_jobs else None,
        nodes=nodes_report(deployed, replacements=replacements) if deployed else None,
        replacements=replacements,
        job=read_or_note("job", job),
        precompilation=read_or_note("job of the host", precompilation) if cluster.host_counts else None,
        absence=None if cluster.node_counts else read_or_note("why there are no nodes", absence),
        events=[event for event in reversed(all_events) if event.of_stack][:_EVENTS],
        not_read=tuple(not_read),
    )
