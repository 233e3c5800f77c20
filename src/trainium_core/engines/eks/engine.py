"""Jobs on the Trainium nodes of an existing EKS cluster, as JobSets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainium_core.engines.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trainium_core.audit.listings.listing import Listing
    from trainium_core.costs.items import CostItem
    from trainium_core.engines.parts import Workloads
    from trainium_core.jobs.engine import JobEngine
    from trainium_core.nodes.report import NodesReport
    from trainium_core.plan import Plan
    from trainium_core.preflight.finding import Check
    from trainium_runtime.aws_service import AwsService, Clients
    from trainium_wire.stack_record import StackRecord


class Eks(Engine):
    key = "eks"
    has_nodes = False
    has_outside_nodes = True
    ends_with_pilot = False
    has_parallel_jobs = True

    def needs_vpc(self, plan: Plan) -> bool:  # noqa: ARG002
        return False

    def has_internet(self, plan: Plan) -> bool:  # noqa: ARG002
        return True

    def cost_items(self, plan: Plan) -> Iterable[CostItem]:
        from trainium_core.engines.eks.plan_notes import cost_items

        return cost_items(plan)

    def cost_notes(self, plan: Plan) -> Iterable[str]:
        from trainium_core.engines.eks.plan_notes import cost_notes

        return cost_notes(plan)

    def plan_rows(self, plan: Plan) -> Sequence[tuple[str, str]]:
        from trainium_core.engines.eks.plan_notes import plan_rows

        return plan_rows(plan)

    def warnings(self, plan: Plan) -> Mapping[str, str]:
        from trainium_core.engines.eks.plan_notes import eks_warnings

        return eks_warnings(plan)

    def unused_settings(self, plan: Plan) -> Mapping[str, str]:
        from trainium_core.engines.eks.plan_notes import unused_settings

        return unused_settings(plan)

    def checks(self) -> Mapping[str, Check]:
        return {}

    def listings(self) -> Sequence[Listing]:
        from trainium_core.engines.eks.listings import LISTINGS

        return LISTINGS

    def workloads(self) -> Workloads:
        from trainium_core.engines.eks.aws_workloads import WORKLOADS

        return WORKLOADS

    def outside_nodes(self, account: AwsService, record: StackRecord) -> NodesReport:
        from trainium_core.engines.eks.aws_nodes import outside_nodes

        return outside_nodes(account, record)

    def outliving_nodes(self, account: AwsService, cluster: str) -> Iterable[str]:
        from trainium_core.engines.eks.aws_nodes import outliving_nodes

        return outliving_nodes(account, cluster)

    def jobs(self, plan: Plan, stack: str, clients: Clients) -> JobEngine:
        from trainium_core.engines.eks.aws_jobs import KubernetesJobs

        return KubernetesJobs(plan, stack, clients)


EKS = Eks()
