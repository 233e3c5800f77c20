"""All checks at once: each asks on a thread of its own, so that the whole takes as long as the longest."""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor

from trainium_core.account import Account, CannotTellError
from trainium_core.plan import Plan
from trainium_core.preflight.finding import Answer, Finding
from trainium_core.preflight.identity_check import check_identity
from trainium_core.preflight.image_check import check_image
from trainium_core.preflight.offering_check import check_offering
from trainium_core.preflight.quota_check import check_quota
from trainium_core.preflight.stack_checks import check_bootstrap, check_stack

Check = Callable[[Plan, Account], Answer]

CHECKS: Mapping[str, Check] = {
    "identity": check_identity,
    "quota": check_quota,
    "offering": check_offering,
    "image": check_image,
    "bootstrap": check_bootstrap,
    "stack": check_stack,
}
"""Every check by its name, in the order its finding is shown."""


def preflight(plan: Plan, account: Account, *, suppressed: Collection[str] = ()) -> tuple[Finding, ...]:
    """Ask the account everything about the plan. A suppressed check is not asked, and its finding says so."""
    with ThreadPoolExecutor(len(CHECKS)) as threads:
        asked = {
            name: threads.submit(_ask, check, plan, account) for name, check in CHECKS.items() if name not in suppressed
        }
        return tuple(
            _finding(name, asked[name].result())
            if name in asked
            else Finding(check=name, outcome="unknown", found="not asked: suppressed", suppressed=True)
            for name in CHECKS
        )


def _ask(check: Check, plan: Plan, account: Account) -> Answer:
    try:
        return check(plan, account)
    except CannotTellError as error:
        return Answer(outcome="unknown", found=str(error))


def _finding(name: str, answer: Answer) -> Finding:
    return Finding(check=name, outcome=answer.outcome, found=answer.found, needed=answer.needed, fix=answer.fix)
