"""EC2: a cluster of instances in an Auto Scaling group, connected by EFA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainium_core.engines.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trainium_core.costs.items import CostItem
    from trainium_core.jobs.engine import JobEngine
    from trainium_core.plan import Plan
    from trainium_core.preflight.finding import Check
    from trainium_runtime.aws_service import Clients


class Ec2(Engine):
    key = "cluster"

    def cost_items(self, plan: Plan) -> Iterable[CostItem]:
        from trainium_core.engines.ec2.costs import cost_items

        return cost_items(plan)

    def warnings(self, plan: Plan) -> Mapping[str, str]:
        from trainium_core.engines.ec2.warnings import cluster_warnings

        return cluster_warnings(plan)

    def checks(self) -> Mapping[str, Check]:
        from trainium_core.engines.ec2.checks import CHECKS

        return CHECKS

    def jobs(self, plan: Plan, stack: str, clients: Clients) -> JobEngine:
        from trainium_core.engines.ec2.aws_jobs import ClusterJobs

        return ClusterJobs(plan, stack, clients)


EC2 = Ec2()
