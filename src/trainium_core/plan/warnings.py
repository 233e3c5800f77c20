"""Warnings that plans of several engines have: each a fact, its consequence and what to do, by its setting."""

from collections.abc import Iterable, Iterator, Mapping

from trainium_core.plan import Plan
from trainium_runtime.naming import CLUSTER_TAG


def merged(warnings: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """One text for each setting; what is said twice is said once."""
    texts: dict[str, dict[str, None]] = {}
    for setting, warning in warnings:
        texts.setdefault(setting, {})[warning] = None
    return {setting: "; ".join(of_setting) for setting, of_setting in texts.items()}


def pilot_warnings(plan: Plan) -> Iterator[tuple[str, str]]:
    """Of the end and the budget of a pilot whose nodes run until they are stopped."""
    if plan.pilot.ends is not None and plan.pilot.notify_email is None:
        yield (
            "notify_email",
            "nobody is warned before the pilot ends: give trn:notify_email, or subscribe to the topic in the outputs",
        )
    if plan.pilot.budget_usd is not None:
        yield (
            "budget_usd",
            f"AWS Budgets sees nothing until the payer of the account has activated the cost allocation tag "
            f"{CLUSTER_TAG}, and then up to a day late: trn:ends is what stops in time",
        )
