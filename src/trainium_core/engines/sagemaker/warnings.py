"""Warnings for the author of a plan for training jobs."""

from collections.abc import Mapping

from trainium_core.plan import Plan


def training_warnings(plan: Plan) -> Mapping[str, str]:
    """Warnings about the end date of the plan, by setting."""
    if plan.pilot.ends is None:
        return {}
    return {
        "ends": "trn:ends does not end SageMakerTrainingStack or its training jobs: each job ends at its maximum "
        "run time, and `trn destroy` deletes the stack"
    }
