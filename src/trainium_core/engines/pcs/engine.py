"""Slurm on AWS PCS: queues, priorities and retries, on nodes that start for jobs and end when idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainium_core.engines.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trainium_core.audit.listings.listing import Listing
    from trainium_core.costs.items import CostItem
    from trainium_core.engines.parts import ServiceNodes, Workloads
    from trainium_core.jobs.engine import JobEngine
    from trainium_core.plan import Plan
    from trainium_core.preflight.finding import Check
    from trainium_runtime.aws_service import Clients


class Pcs(Engine):
    key = "pcs"
    shared_checks = ("quota", "offering", "reservation", "placement", "volumes", "lustre", "efs")
    can_sleep = False
    has_parallel_jobs = True

    def cost_items(self, plan: Plan) -> Iterable[CostItem]:
        from trainium_core.engines.pcs.costs import cost_items

        return cost_items(plan)

    def cost_notes(self, plan: Plan) -> Iterable[str]:
        from trainium_core.engines.pcs.costs import cost_notes

        return cost_notes(plan)

    def plan_rows(self, plan: Plan) -> Sequence[tuple[str, str]]:
        return [
            ("Nodes", f"{plan.pcs.min_nodes} to {plan.nodes}; jobs start them, and they stop when they are idle"),
            ("Queues", ", ".join(queue.partition(":")[0] for queue in plan.pcs.queues)),
            ("Login node", plan.pcs.login_instance_type if plan.pcs.login else "none"),
        ]

    def warnings(self, plan: Plan) -> Mapping[str, str]:
        from trainium_core.engines.pcs.warnings import pcs_warnings

        return pcs_warnings(plan)

    def unused_settings(self, plan: Plan) -> Mapping[str, str]:
        from trainium_core.engines.pcs.warnings import unused_settings

        return unused_settings(plan)

    def checks(self) -> Mapping[str, Check]:
        from trainium_core.engines.pcs.check import check_pcs

        return {"pcs": check_pcs}

    def listings(self) -> Sequence[Listing]:
        from trainium_core.engines.pcs.listings import LISTINGS

        return LISTINGS

    def workloads(self) -> Workloads:
        from trainium_core.engines.pcs.aws_workloads import WORKLOADS

        return WORKLOADS

    def service_nodes(self) -> ServiceNodes:
        from trainium_core.engines.pcs.aws_nodes import SERVICE_NODES

        return SERVICE_NODES

    def jobs(self, plan: Plan, stack: str, clients: Clients) -> JobEngine:
        from trainium_core.engines.pcs.aws_jobs import SlurmJobs

        return SlurmJobs(plan, stack, clients)


PCS = Pcs()
