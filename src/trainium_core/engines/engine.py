"""The interface of an engine: what it reports about a plan, and what its service runs or creates outside the stack."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trainium_core.audit.listings.listing import Listing
from trainium_core.costs.items import CostItem
from trainium_core.naming import CONSTRUCT_IDS
from trainium_core.nodes.fleet import DeployedFleet
from trainium_core.nodes.report import ServiceGroup
from trainium_core.plan import Plan
from trainium_core.preflight.account import Account
from trainium_core.stacks.cluster_resources import TemplateResources
from trainium_core.teardown.account import Workload
from trainium_runtime.aws_service import AwsService
from trainium_runtime.check_result import CheckResult

Check = Callable[[Plan, Account], CheckResult | None]
"""A preflight check: returns its result, or None if it does not apply to the plan.

A check may raise UnavailableError. The result is then `unknown`.
"""


@dataclass(frozen=True, kw_only=True)
class ServiceNodes:
    """Nodes that a service runs for a resource of the stack, without an Auto Scaling group.

    Attributes:
        resource_type: CloudFormation type of the resource.
        called: Name of the resource in messages.
        running: Returns the number of nodes, given the physical ID of the resource.
        fleets: Returns the nodes that a template defines, given its resources and their physical IDs by logical ID.
        group: Reads the group of a fleet, given its physical ID.
    """

    resource_type: str
    called: str
    running: Callable[[AwsService, str], int]
    fleets: Callable[[TemplateResources, Mapping[str, str]], Iterable[DeployedFleet]]
    group: Callable[[AwsService, str], ServiceGroup]


@dataclass(frozen=True, kw_only=True)
class Workloads:
    """The workloads of an engine, such as jobs. They are stopped before its stack is deleted.

    Attributes:
        running: Returns the running workloads of a cluster, given its name and the ARNs of its state machines.
        stop: Functions by kind, each of which stops one workload by its ID. Kinds are unique across engines.
        resource_type: Type of a resource that every stack with such workloads has, whatever its name.
        end_with_stack: Whether deleting the stack ends workloads that were not stopped.
    """

    running: Callable[[AwsService, str, Sequence[str]], Iterable[Workload]]
    stop: Mapping[str, Callable[[AwsService, str], None]]
    resource_type: str
    end_with_stack: bool = False


@dataclass(frozen=True, kw_only=True)
class Engine:
    """One engine.

    Its callables get only plans whose trn:stacks includes the engine, with two exceptions: `warnings` of the cluster's
    engine gets every plan, and a check also gets the plans of engines that list it in `shared_checks`.

    Attributes:
        key: Its name in trn:stacks.
        cost_items: The billed items of its stack.
        cost_notes: Notes on the estimate of these items.
        warnings: Warnings for the author of a plan, by setting.
        needs_vpc: Whether its stack is in a VPC. The VPC is new unless trn:vpc_id is set.
        checks: Its preflight checks by name, in the order of the findings. Names are unique across engines.
        shared_checks: Names of other engines' checks that apply to its stack too.
        listings: Resource kinds that only this engine creates, for `trn audit`.
        workloads: Workloads to stop before its stack is deleted; None if there are none.
        service_nodes: Nodes that its service runs; None if an Auto Scaling group runs them, or if it has none.
        ends_with_pilot: Whether trn:ends ends its stack.
        can_sleep: Whether its nodes can be put to sleep. If not, its stack is destroyed at the end of the pilot, if
            trn:ends ends it.
    """

    key: str
    cost_items: Callable[[Plan], Iterable[CostItem]]
    cost_notes: Callable[[Plan], Iterable[str]] = lambda _plan: ()
    warnings: Callable[[Plan], Mapping[str, str]]
    needs_vpc: Callable[[Plan], bool] = lambda _plan: True
    checks: Mapping[str, Check] = field(default_factory=dict[str, Check])
    shared_checks: Sequence[str] = ()
    listings: Sequence[Listing] = ()
    workloads: Workloads | None = None
    service_nodes: ServiceNodes | None = None
    ends_with_pilot: bool = True
    can_sleep: bool = True

    @property
    def construct_id(self) -> str:
        """The ID of its stack in the app."""
        return CONSTRUCT_IDS[self.key]
