"""The interface of an engine, which is a way to run a plan in its own stack.

Methods import the other modules of the engine when they are called. So a command loads only the parts that it uses: for
example, `trn run` loads no kinds of an audit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from trainium_core.naming import CONSTRUCT_IDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trainium_core.audit.listings.listing import Listing
    from trainium_core.costs.items import CostItem
    from trainium_core.engines.parts import ServiceNodes, Workloads
    from trainium_core.jobs.engine import JobEngine
    from trainium_core.nodes.report import NodesReport
    from trainium_core.plan import Plan
    from trainium_core.preflight.finding import Check
    from trainium_runtime.aws_service import AwsService, Clients
    from trainium_wire.stack_record import StackRecord


class Engine(ABC):
    """One engine.

    Its methods get only plans whose trn:stacks includes the engine, but a check also gets the plans of engines that
    list it in `shared_checks`.

    Attributes:
        key: Its name in trn:stacks.
        shared_checks: Names of other engines' checks that apply to its stack too.
        has_nodes: Whether its stack has nodes, which are EC2 instances.
        has_outside_nodes: Whether its jobs run on nodes that are not part of its stack.
        ends_with_pilot: Whether trn:ends ends its stack.
        can_sleep: Whether its nodes can be put to sleep. If not, its stack is destroyed at the end of the pilot, if
            trn:ends ends it.
        has_parallel_jobs: Whether several jobs, also of several people, may run or wait at the same time.
    """

    key: ClassVar[str]
    shared_checks: ClassVar[Sequence[str]] = ()
    has_nodes: ClassVar[bool] = True
    has_outside_nodes: ClassVar[bool] = False
    ends_with_pilot: ClassVar[bool] = True
    can_sleep: ClassVar[bool] = True
    has_parallel_jobs: ClassVar[bool] = False

    @property
    def construct_id(self) -> str:
        """The ID of its stack in the app."""
        return CONSTRUCT_IDS[self.key]

    def needs_vpc(self, plan: Plan) -> bool:  # noqa: ARG002
        """Whether its stack is in a VPC. The VPC is new unless trn:vpc_id is set."""
        return True

    def has_internet(self, plan: Plan) -> bool:
        """Whether its jobs reach the internet. In an existing VPC, that is assumed."""
        return plan.network.effective_egress in ("nat-gateway", "existing")

    @abstractmethod
    def cost_items(self, plan: Plan) -> Iterable[CostItem]:
        """The billed items of its stack."""

    def cost_notes(self, plan: Plan) -> Iterable[str]:  # noqa: ARG002
        """Notes on the estimate of these items."""
        return ()

    def plan_rows(self, plan: Plan) -> Sequence[tuple[str, str]]:  # noqa: ARG002
        """What `trn plan` shows of its stack besides the nodes, as labels and texts."""
        return ()

    @abstractmethod
    def warnings(self, plan: Plan) -> Mapping[str, str]:
        """Warnings for the author of a plan, by setting."""

    def unused_settings(self, plan: Plan) -> Mapping[str, str]:  # noqa: ARG002
        """The settings that its stack does not use, each with the fix. Those of other engines are not included."""
        return {}

    @abstractmethod
    def checks(self) -> Mapping[str, Check]:
        """Its preflight checks by name, in the order of the findings. Names are unique across engines."""

    def listings(self) -> Sequence[Listing]:
        """Resource kinds that only this engine creates, for `trn audit`."""
        return ()

    def workloads(self) -> Workloads | None:
        """Workloads to stop before its stack is deleted; None if there are none."""
        return None

    def service_nodes(self) -> ServiceNodes | None:
        """Nodes that its service runs; None if an Auto Scaling group runs them, or if it has none."""
        return None

    def outside_nodes(self, account: AwsService, record: StackRecord) -> NodesReport | None:  # noqa: ARG002
        """The nodes that run its jobs, given the record of its stack; None unless it has_outside_nodes.

        Raises:
            UnavailableError: A request failed or was denied.
        """
        return None

    def outliving_nodes(self, account: AwsService, cluster: str) -> Iterable[str]:  # noqa: ARG002
        """Clauses about billed nodes with the tag of the cluster that `trn destroy` does not end, and how to end them.

        Raises:
            UnavailableError: A request failed or was denied.
        """
        return ()

    @abstractmethod
    def jobs(self, plan: Plan, stack: str, clients: Clients) -> JobEngine:
        """Its jobs in a CloudFormation stack."""
