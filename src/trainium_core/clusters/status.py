"""The status of one cluster: stacks, nodes, jobs and use."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from trainium_core.clusters.cluster import Absence, Cluster
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.report import NodesNotCreatedError, NodesReport, NoFleetError, nodes_report, template_sentence
from trainium_core.stacks.aws_events import AwsStackEvents
from trainium_core.stacks.events import StackEvent
from trainium_runtime.errors import UnavailableError
from trainium_runtime.usage import ClusterUsage

Answer = TypeVar("Answer")

_EVENTS = 3
"""The number of events of the stack itself that are shown."""


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """The current or last job.

    Attributes:
        job_id: ID of the job.
        status: Its status, in a few words.
    """

    job_id: str
    status: str


@dataclass(frozen=True, kw_only=True)
class ClusterStatus:
    """The status of one cluster.

    Attributes:
        nodes: The nodes; None if they cannot be read, or if the stack does not exist.
        replacements: Maximum number of failed nodes that are replaced in any 24 hours.
        usage: Use of the nodes; None if there is no report of it, or if the nodes start with jobs.
        job: The current or last job; None without one.
        events: The last three events of the stack itself, newest first.
        template: A sentence about nodes that do not run the newest version of their launch template, if any.
        absence: Why there are no nodes; None if there are nodes, or no reason is known.
        not_read: What could not be read, and why.
        plans_nodes: Whether a stack of the plan has nodes.
    """

    cluster: Cluster
    nodes: NodesReport | None = None
    replacements: int = 0
    usage: ClusterUsage | None = None
    job: JobStatus | None = None
    events: Sequence[StackEvent] = ()
    template: str | None = None
    absence: Absence | None = None
    not_read: Sequence[str] = ()
    plans_nodes: bool = True

    @property
    def has_nodes(self) -> bool:
        """Whether the cluster has nodes, or would have some if it were deployed and awake."""
        cluster = self.cluster
        return self.plans_nodes or bool(cluster.nodes) or any(stack.has_nodes for stack in cluster.stacks)

    @property
    def is_healthy(self) -> bool:
        """Whether the cluster is asleep, needs no nodes now, or has verified all nodes that it needs."""
        if self.cluster.state == "asleep":
            return True
        if not self.has_nodes:
            return all(stack.is_steady for stack in self.cluster.stacks)
        return self.nodes is not None and (self.nodes.asleep or self.nodes.verdict.state == "ready")


def cluster_status(
    cluster: Cluster,
    stack: str,
    *,
    nodes: AwsNodes,
    events: AwsStackEvents,
    job: Callable[[], JobStatus | None],
    usage: Callable[[Collection[str]], ClusterUsage | None],
    absence: Callable[[], Absence | None],
    replacements: int,
    plans_nodes: bool,
) -> ClusterStatus:
    """Read the status of a cluster. Parts that cannot be read are listed in `not_read`, but not those that a stack has
    not created, or has deleted again.

    Args:
        cluster: The cluster.
        stack: Name of the stack with the nodes.
        nodes: Reads the nodes.
        events: Reads the events of the stack.
        job: Reads the current or last job.
        usage: Reads the use of instances by their IDs.
        absence: Reads why there are no nodes.
        replacements: Maximum number of failed nodes that are replaced in any 24 hours.
        plans_nodes: Whether a stack of the plan has nodes.
    """
    not_read = list[str]()

    def read_or_note(what: str, read: Callable[[], Answer]) -> Answer | None:
        try:
            return read()
        except (NodesNotCreatedError, NoFleetError):
            return None
        except UnavailableError as error:
            not_read.append(f"{what}: {error}")
            return None

    described = {node.instance_id: node.described for node in cluster.nodes}
    deployed = read_or_note("nodes", lambda: nodes.nodes(stack, described=described, with_metrics=True))
    all_events = read_or_note("events", lambda: events.stack_events(stack, after=None)) or ()
    templates: Mapping[str, str] = deployed.templates if deployed else {}
    newest = (
        read_or_note("launch template", lambda: nodes.newest_version(next(iter(templates.values())).partition(":")[0]))
        if templates
        else None
    )
    others = any(found.name == stack and found.has_record and not found.has_nodes for found in cluster.stacks)
    outside = read_or_note("nodes", lambda: nodes.outside_nodes(stack)) if others and not deployed else None
    instances = [node.instance_id for node in deployed.instances] if deployed else []
    for_jobs = deployed is not None and deployed.for_jobs is not None
    return ClusterStatus(
        cluster=cluster,
        # Nodes that start with jobs do not report their use: AWS PCS terminates idle ones.
        usage=read_or_note("use of the nodes", lambda: usage(instances)) if instances and not for_jobs else None,
        nodes=nodes_report(deployed, replacements=replacements) if deployed else outside,
        replacements=replacements,
        template=template_sentence(templates, newest) if newest is not None else None,
        job=read_or_note("job", job),
        absence=None if cluster.node_counts else read_or_note("why there are no nodes", absence),
        events=[event for event in reversed(all_events) if event.of_stack][:_EVENTS],
        not_read=tuple(not_read),
        plans_nodes=plans_nodes,
    )
