"""Runs all checks concurrently, for a plan in one region or in several."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from trainium_core.engines.engine import Check
from trainium_core.engines.registry import ENGINES, engines_with_check
from trainium_core.plan import Plan
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.preflight.account import Account
from trainium_core.preflight.budget_check import check_budget
from trainium_core.preflight.cache_check import check_cache
from trainium_core.preflight.cost_check import check_cost
from trainium_core.preflight.end_check import check_end
from trainium_core.preflight.finding import Finding
from trainium_core.preflight.identity_check import check_identity
from trainium_core.preflight.limits_check import check_limits
from trainium_core.preflight.network_check import check_network
from trainium_core.preflight.stack_checks import check_bootstrap, check_stack
from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import BE_ALLOWED, REMEDIES, SIGN_IN, UnavailableError

_ENGINES_OF = {name: engines_with_check(name) for engine in ENGINES.values() for name in engine.checks}

CHECKS: Mapping[str, Check] = {
    "identity": check_identity,
    **{name: check for engine in ENGINES.values() for name, check in engine.checks.items()},
    "network": check_network,
    "limits": check_limits,
    "cache": check_cache,
    "bootstrap": check_bootstrap,
    "stack": check_stack,
    "end": check_end,
    "budget": check_budget,
    "cost": check_cost,
}
"""All checks by name, in the order of the findings. An engine's checks run if trn:stacks includes it."""

_STARTED_FIRST = ("bootstrap", "quota", "image")
"""Checks with sequential requests, which start first because they take longest."""

NO_MORE: Mapping[str, Check] = {}

_LOCAL_CHECKS = ("cost",)
"""Checks that produce a finding from local data even if AWS does not answer."""

_WITHOUT_PERMISSION = frozenset({"identity"})
"""Checks that need no permission."""

_SUPPRESSED = CheckResult(outcome="unknown", found="not checked: suppressed")


def preflight(
    plan: Plan, account: Account, *, suppressed: Collection[str] = (), more: Mapping[str, Check] = NO_MORE
) -> tuple[Finding, ...]:
    """Run the checks of a plan.

    Args:
        plan: The plan.
        account: The account and region to check.
        suppressed: Checks that do not run; their findings say so.
        more: Additional checks by name.
    """
    (findings,) = preflight_each([(plan, account)], suppressed=suppressed, more=more)
    return findings


def preflight_each(
    plans: Sequence[tuple[Plan, Account]],
    *,
    suppressed: Collection[str] = (),
    more: Mapping[str, Check] = NO_MORE,
) -> tuple[tuple[Finding, ...], ...]:
    """The findings of several plans, each with its account, in their order."""
    to_run = {**CHECKS, **more}
    names = [name for name in dict.fromkeys((*_STARTED_FIRST, *to_run)) if name not in suppressed]
    with ThreadPoolExecutor(max(1, len(names) * len(plans))) as threads:
        running = {
            (name, index): threads.submit(_run_check, name, to_run[name], plan, account)
            for name in names
            for index, (plan, account) in enumerate(plans)
        }
    return tuple(
        tuple(_findings({name: running[name, index].result() if name in names else _SUPPRESSED for name in to_run}))
        for index in range(len(plans))
    )


def _run_check(name: str, check: Check, plan: Plan, account: Account) -> CheckResult | None:
    if name in _ENGINES_OF and not _ENGINES_OF[name] & {*plan.stacks}:
        return None
    try:
        return check(plan, account)
    except UnavailableError as error:
        return CheckResult(outcome="unknown", found=error.reason, fix=error.remedy)


def no_access(findings: Sequence[Finding]) -> str | None:
    """Why no check could read anything, and what helps; None if one could."""
    answered = [finding for finding in findings if not finding.suppressed and finding.check not in _LOCAL_CHECKS]
    unknown = [finding for finding in answered if finding.outcome == "unknown"]
    remedied = [finding for finding in unknown if finding.fix in REMEDIES]
    if not remedied or {finding.check for finding in answered if finding not in unknown} - _WITHOUT_PERMISSION:
        return None
    first, more = remedied[0], len(unknown) - 1
    others = f", and {more} more checks have no answer" if first.fix == BE_ALLOWED and more else ""
    return f"{first.found}{others}: {first.fix}"


def _not_run(check: str) -> CheckResult:
    return CheckResult(outcome="unknown", found=f"not checked: see {check}")


def _findings(results: Mapping[str, CheckResult | None]) -> Iterator[Finding]:
    without_access: str | None = None
    said = False
    for name, given in results.items():
        result = given
        if result is not None and result.fix == SIGN_IN:  # the same reason for all is shown once
            result = result if without_access is None else _not_run(without_access)
            without_access = without_access or name
        elif result is not None and result.fix == BE_ALLOWED:
            result, said = replace(result, fix="" if said else BE_ALLOWED), True
        if result is not None:
            yield Finding(
                check=name,
                outcome=result.outcome,
                found=result.found,
                needed=result.needed,
                fix=result.fix,
                suppressed=result is _SUPPRESSED,
            )


def preflight_in_regions(
    plan: Plan,
    regions: Collection[str],
    account_in: Callable[[str], Account],
    *,
    suppressed: Collection[str] = (),
    more: Mapping[str, Check] = NO_MORE,
) -> Mapping[str, tuple[Finding, ...]]:
    """The findings by region, including those of `more`. Raises PlanError if a region lacks the type."""
    plans = [(plan_in(plan, region), account_in(region)) for region in regions]
    return dict(zip(regions, preflight_each(plans, suppressed=suppressed, more=more), strict=True))


def plan_in(plan: Plan, region: str) -> Plan:
    """The plan for another region, without settings that are valid in one region only, such as a zone.

    A pinned image is replaced by its parameter. An existing VPC or reservation stays in the plan, and will not be
    found. Raises PlanError if the region does not offer the type, or if the plan names an EKS cluster.
    """
    if region == plan.region:
        return plan
    left_out = {key: setting.default for key, setting in SETTINGS.items() if setting.regional}
    return plan.but(**left_out, region=region, ami=plan.ami_parameter or plan.ami, ami_parameter=None)
