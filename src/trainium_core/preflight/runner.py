"""Runs all checks of a plan concurrently."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from trainium_core.aws.account import AwsAccount
from trainium_core.engines.registry import ENGINES, engines_with_check
from trainium_core.naming import DEFAULT_QUALIFIER
from trainium_core.plan import Plan
from trainium_core.preflight.budget_check import check_budget
from trainium_core.preflight.cache_check import check_cache
from trainium_core.preflight.cost_check import check_cost
from trainium_core.preflight.end_check import check_end
from trainium_core.preflight.finding import Check, Finding
from trainium_core.preflight.identity_check import check_identity
from trainium_core.preflight.limits_check import check_limits
from trainium_core.preflight.network_check import check_network
from trainium_core.preflight.stack_checks import check_bootstrap, check_project, check_stack
from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import BE_ALLOWED, REMEDIES, SIGN_IN, UnavailableError

_ENGINES_OF = {name: engines_with_check(name) for engine in ENGINES.values() for name in engine.checks()}

CHECKS: Mapping[str, Check] = {
    "identity": check_identity,
    **{name: check for engine in ENGINES.values() for name, check in engine.checks().items()},
    "network": check_network,
    "limits": check_limits,
    "cache": check_cache,
    "bootstrap": check_bootstrap,
    "stack": check_stack,
    "project": check_project,
    "end": check_end,
    "budget": check_budget,
    "cost": check_cost,
}
"""All checks by name, in the order of the findings. An engine's check runs if trn:stacks includes the
engine, or another that shares the check.
"""

_STARTED_FIRST = ("bootstrap", "quota", "image")
"""The checks that start first: they make sequential requests, and so take longest."""

_NO_MORE: Mapping[str, Check] = {}

_LOCAL_CHECKS = ("cost",)
"""Checks that produce a finding from local data even if requests fail."""

_WITHOUT_PERMISSION = frozenset({"identity"})
"""Checks that need no permission."""

_SUPPRESSED = CheckResult(outcome="unknown", found="not checked: suppressed")


def preflight(
    plan: Plan,
    account: AwsAccount,
    *,
    suppressed: Collection[str] = (),
    more: Mapping[str, Check] = _NO_MORE,
    qualifier: str = DEFAULT_QUALIFIER,
) -> tuple[Finding, ...]:
    """Run the checks of a plan.

    Args:
        plan: The plan.
        account: The account and region to check.
        suppressed: Checks that do not run; their findings say so.
        more: Additional checks by name.
        qualifier: The qualifier of `cdk bootstrap` that the app uses.

    Returns:
        The findings of the checks that apply to the plan or are suppressed, in the order of the checks.
    """
    checks = {**CHECKS, "bootstrap": partial(check_bootstrap, qualifier=qualifier), **more}
    names = [name for name in dict.fromkeys((*_STARTED_FIRST, *checks)) if name not in suppressed]
    with ThreadPoolExecutor(max(1, len(names))) as threads:
        running = {name: threads.submit(_run_check, name, checks[name], plan, account) for name in names}
    return tuple(_findings({name: running[name].result() if name in running else _SUPPRESSED for name in checks}))


def _run_check(name: str, check: Check, plan: Plan, account: AwsAccount) -> CheckResult | None:
    if name in _ENGINES_OF and not _ENGINES_OF[name] & {*plan.stacks}:
        return None
    try:
        return check(plan, account)
    except UnavailableError as error:
        return CheckResult(outcome="unknown", found=error.reason, fix=error.remedy)


def no_access(findings: Sequence[Finding]) -> str | None:
    """The reason and remedy if no check could read anything; None if one could, or if the remedy is unknown."""
    answered = [finding for finding in findings if not finding.suppressed and finding.check not in _LOCAL_CHECKS]
    unknown = [finding for finding in answered if finding.outcome == "unknown"]
    remedied = [finding for finding in unknown if finding.fix in REMEDIES]
    if not remedied or {finding.check for finding in answered if finding not in unknown} - _WITHOUT_PERMISSION:
        return None
    first, more = remedied[0], len(unknown) - 1
    others = f"; {more + 1} checks have no answer" if first.fix == BE_ALLOWED and more else ""
    return f"{first.found}{others}: {first.fix}"


def _findings(results: Mapping[str, CheckResult | None]) -> Iterator[Finding]:
    """The findings of checks that apply to the plan. Advice to sign in, or to get permissions, is given once."""
    signed_out_at, has_advised = "", False
    for name, result in results.items():
        if result is None:
            continue
        found, fix = result.found, result.fix
        if fix == SIGN_IN and signed_out_at:
            found, fix = f"not checked: see {signed_out_at}", ""
        elif fix == SIGN_IN:
            signed_out_at = name
        elif fix == BE_ALLOWED:
            fix, has_advised = "" if has_advised else fix, True
        suppressed = result is _SUPPRESSED
        yield Finding(
            check=name, outcome=result.outcome, found=found, needed=result.needed, fix=fix, suppressed=suppressed
        )
