"""What a plan's author should know although the plan can be deployed."""

from collections.abc import Mapping

from trainium_core.facts import facts
from trainium_core.plan import Plan


def plan_warnings(plan: Plan) -> Mapping[str, str]:
    """Warnings by name: each a fact, its consequence and what to do."""
    warnings: dict[str, str] = {}
    if plan.ami.startswith("/aws/service/neuron/") and plan.region in facts()["image"]["regions_without_parameters"]:
        warnings["ami"] = (
            f"{plan.region} had no /aws/service/neuron parameters when last seen (2026-10-03): if the deployment "
            "cannot fetch the parameter, copy an image there and set trn:ami to its id"
        )
    if plan.effective_egress == "none":
        warnings["egress"] = (
            "with trn:egress=none nodes reach S3 and nothing else: no sessions, no packages; what a job needs must be "
            "in the image or in S3"
        )
    return warnings
