"""SageMaker training: runs the plan as training jobs, without permanent nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainium_core.engines.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trainium_core.audit.listings.listing import Listing
    from trainium_core.costs.items import CostItem
    from trainium_core.engines.parts import Workloads
    from trainium_core.jobs.engine import JobEngine
    from trainium_core.plan import Plan
    from trainium_core.preflight.finding import Check
    from trainium_runtime.aws_service import Clients


class SageMaker(Engine):
    key = "sagemaker"
    has_nodes = False
    ends_with_pilot = False
    has_parallel_jobs = True

    def needs_vpc(self, plan: Plan) -> bool:
        return plan.sagemaker.vpc

    def has_internet(self, plan: Plan) -> bool:
        return not plan.sagemaker.vpc or plan.network.vpc_id is not None or plan.network.egress == "nat-gateway"

    def cost_items(self, plan: Plan) -> Iterable[CostItem]:
        from trainium_core.engines.sagemaker.costs import cost_items

        return cost_items(plan)

    def cost_notes(self, plan: Plan) -> Iterable[str]:
        from trainium_core.engines.sagemaker.costs import cost_notes

        return cost_notes(plan)

    def plan_rows(self, plan: Plan) -> Sequence[tuple[str, str]]:
        from trainium_core.engines.sagemaker.jobs.job import sagemaker_type

        return [
            ("Each job", f"{plan.nodes} x {sagemaker_type(plan.instance_type)}, which start and end with it"),
            ("Image", plan.sagemaker.image or f"AWS's training image of {plan.region}"),
            ("Queue", f"jobs use {plan.sagemaker.max_instances or plan.nodes} instances at a time; others wait"),
            ("Longest job", f"{plan.sagemaker.max_runtime_hours} h"),
        ]

    def warnings(self, plan: Plan) -> Mapping[str, str]:
        from trainium_core.engines.sagemaker.warnings import training_warnings

        return training_warnings(plan)

    def unused_settings(self, plan: Plan) -> Mapping[str, str]:
        from trainium_core.engines.sagemaker.warnings import unused_settings

        return unused_settings(plan)

    def checks(self) -> Mapping[str, Check]:
        from trainium_core.engines.sagemaker.quota_check import check_training_quota

        return {"training": check_training_quota}

    def listings(self) -> Sequence[Listing]:
        from trainium_core.engines.sagemaker.listings import LISTINGS

        return LISTINGS

    def workloads(self) -> Workloads:
        from trainium_core.engines.sagemaker.aws_workloads import WORKLOADS

        return WORKLOADS

    def jobs(self, plan: Plan, stack: str, clients: Clients) -> JobEngine:
        from trainium_core.engines.sagemaker.aws_jobs import SageMakerJobs

        return SageMakerJobs(plan, stack, clients)


SAGEMAKER = SageMaker()
