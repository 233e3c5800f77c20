"""What the service of an engine runs outside the stack: nodes, and workloads such as jobs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainium_core.nodes.report import ServiceGroup
from trainium_core.stacks.aws_records import AwsRecords
from trainium_core.teardown.leftovers import Workload
from trainium_runtime.aws_service import AwsService


@dataclass(frozen=True, kw_only=True)
class ServiceNodes:
    """Nodes that a service runs for a resource of the stack, without an Auto Scaling group.

    Attributes:
        resource_type: CloudFormation type of the resource.
        called: Name of the resource in messages.
        running: Returns the number of nodes, given the physical ID of the resource.
        group: Reads the group of a cluster, given its name; None if it does not exist.
        login_group: Part of the logical ID of the group of the login node, which every update of the group replaces.
        named: Resource types whose names are unique: one cannot replace another with the same name.
    """

    resource_type: str
    called: str
    running: Callable[[AwsService, str], int]
    group: Callable[[AwsService, str], ServiceGroup | None]
    login_group: str
    named: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Workloads:
    """The workloads of an engine, such as jobs. They are stopped before its stack is deleted.

    Attributes:
        running: Returns the running workloads of a cluster, given its name.
        stop: Functions by kind, each of which stops one workload by its ID. Kinds are unique across engines.
        resource_type: Type of a resource that every stack with such workloads has, whatever its name.
        end_with_stack: Whether deleting the stack ends workloads that were not stopped.
        need_stack: Whether workloads lose their results without the stack, and are no longer found.
    """

    running: Callable[[AwsRecords, str], Iterable[Workload]]
    stop: Mapping[str, Callable[[AwsService, str], None]]
    resource_type: str
    end_with_stack: bool = False
    need_stack: bool = False
