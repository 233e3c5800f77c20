"""What an engine answers about a plan, and what its service makes in an account besides the stack."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trainium_core.audit.listings.listing import Listing
from trainium_core.costs.items import CostItem
from trainium_core.naming import CONSTRUCT_IDS
from trainium_core.plan import Plan
from trainium_core.preflight.account import Account
from trainium_core.teardown.account import Workload
from trainium_runtime.aws_service import AwsService
from trainium_runtime.check_result import CheckResult

Check = Callable[[Plan, Account], CheckResult | None]
"""The result of a check; None when the plan has nothing for it to check."""


@dataclass(frozen=True, kw_only=True)
class ServiceLogs:
    """Log groups that a service creates.

    Attributes:
        prefix: What their names begin with. They end in the id of a resource.
        resource_type: The CloudFormation type of that resource.
    """

    prefix: str
    resource_type: str


@dataclass(frozen=True, kw_only=True)
class ServiceNodes:
    """Nodes that a service runs in a resource of the stack, without an Auto Scaling group.

    Attributes:
        resource_type: The CloudFormation type of the resource.
        called: What messages call the resource.
        running: Returns how many nodes are billed, for the physical id of the resource.
    """

    resource_type: str
    called: str
    running: Callable[[AwsService, str], int]


@dataclass(frozen=True, kw_only=True)
class Workloads:
    """What runs on an engine and outlives its stack, such as jobs.

    Attributes:
        running: Returns what runs for a cluster, by its name and the ARNs of its state machines.
        stop: Stops one workload by its id, by kind. No two engines have a kind in common.
    """

    running: Callable[[AwsService, str, Sequence[str]], Iterable[Workload]]
    stop: Mapping[str, Callable[[AwsService, str], None]]


def _no_notes(_plan: Plan) -> Iterable[str]:
    return ()


def _always(_plan: Plan) -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Engine:
    """One engine. Its callables are only asked about plans whose trn:stacks has it.

    Attributes:
        key: What trn:stacks calls it.
        cost_items: What AWS bills its stack for.
        cost_notes: What to know about that estimate.
        warnings: What the author of a plan should know, by setting.
        needs_vpc: Whether its stack is in a VPC, a new one unless trn:vpc_id is given.
        checks: What preflight asks for it, by name, in the order of the findings. No two engines share a name.
        listings: The kinds of resources that only this engine creates, for an audit.
        workloads: What outlives its stack; None if nothing does.
        service_logs: Log groups that its service creates; None if it creates none.
        service_nodes: Nodes that its service runs; None if an Auto Scaling group runs them.
        ec2_shows_nodes: Whether its nodes are instances of the account.
        ends_with_pilot: Whether trn:ends ends its stack.
        can_sleep: Whether its stack stays without nodes then, unless trn:ends_action says otherwise.
    """

    key: str
    cost_items: Callable[[Plan], Iterable[CostItem]]
    cost_notes: Callable[[Plan], Iterable[str]] = _no_notes
    warnings: Callable[[Plan], Mapping[str, str]]
    needs_vpc: Callable[[Plan], bool] = _always
    checks: Mapping[str, Check] = field(default_factory=dict[str, Check])
    listings: Sequence[Listing] = ()
    workloads: Workloads | None = None
    service_logs: ServiceLogs | None = None
    service_nodes: ServiceNodes | None = None
    ec2_shows_nodes: bool = True
    ends_with_pilot: bool = True
    can_sleep: bool = True

    @property
    def construct_id(self) -> str:
        """Id of its stack in the app."""
        return CONSTRUCT_IDS[self.key]
