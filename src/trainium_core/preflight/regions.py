"""The same plan asked about in several regions at once."""

from collections.abc import Callable, Collection, Mapping

from trainium_core.engines.engine import Check
from trainium_core.plan import Plan
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.preflight.account import Account
from trainium_core.preflight.finding import Finding
from trainium_core.preflight.runner import NO_MORE, preflight_each


def preflight_in_regions(
    plan: Plan,
    regions: Collection[str],
    account_in: Callable[[str], Account],
    *,
    suppressed: Collection[str] = (),
    more: Mapping[str, Check] = NO_MORE,
) -> Mapping[str, tuple[Finding, ...]]:
    """The findings by region, of all checks and of `more`. Raises PlanError for a region that lacks the type."""
    plans = [(plan_in(plan, region), account_in(region)) for region in regions]
    return dict(zip(regions, preflight_each(plans, suppressed=suppressed, more=more), strict=True))


def plan_in(plan: Plan, region: str) -> Plan:
    """The plan as it would be elsewhere: without what means something in its own region alone, such as a zone.

    Of a pinned image its parameter is taken. A VPC or reservation of the user's own stays, and will not be found.
    Raises PlanError when the region does not offer the type, or the plan names an EKS cluster.
    """
    if region == plan.region:
        return plan
    left_out = {key: setting.default for key, setting in SETTINGS.items() if setting.regional}
    return plan.but(**left_out, region=region, ami=plan.ami_parameter or plan.ami, ami_parameter=None)
