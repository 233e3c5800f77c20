"""All checks at once: each asks on a thread of its own, so that the whole takes as long as the longest."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from trainium_core.account import Account
from trainium_core.plan import Plan
from trainium_core.preflight.cache_check import check_cache
from trainium_core.preflight.cost_check import check_cost
from trainium_core.preflight.efs_check import check_efs
from trainium_core.preflight.end_check import check_end
from trainium_core.preflight.finding import Finding
from trainium_core.preflight.hyperpod_check import check_hyperpod
from trainium_core.preflight.identity_check import check_identity
from trainium_core.preflight.image_check import check_image
from trainium_core.preflight.lustre_check import check_lustre
from trainium_core.preflight.network_check import check_network
from trainium_core.preflight.offering_check import check_offering
from trainium_core.preflight.quota_check import check_quota
from trainium_core.preflight.reservation_check import check_reservation
from trainium_core.preflight.stack_checks import check_bootstrap, check_stack
from trainium_core.preflight.volume_check import check_volumes
from trainium_runtime.answer import Answer
from trainium_runtime.errors import NotSignedInError, UnavailableError

Check = Callable[[Plan, Account], Answer | None]
"""What a check answers about a plan; None when the plan gives it nothing to ask."""

CHECKS: Mapping[str, Check] = {
    "identity": check_identity,
    "quota": check_quota,
    "offering": check_offering,
    "reservation": check_reservation,
    "image": check_image,
    "volumes": check_volumes,
    "network": check_network,
    "lustre": check_lustre,
    "efs": check_efs,
    "cache": check_cache,
    "hyperpod": check_hyperpod,
    "bootstrap": check_bootstrap,
    "stack": check_stack,
    "end": check_end,
    "cost": check_cost,
}
"""Every check by its name, in the order its finding is shown."""


_OF_THE_NODES = frozenset({"quota", "offering", "reservation", "image", "volumes", "lustre", "efs"})
"""What is asked about the nodes of TrnClusterStack, and says nothing about SageMaker's instances."""

_BEGUN_FIRST = ("bootstrap", "quota", "image")
"""Checks whose questions wait for each other: what is begun first is not what all wait for in the end."""

_NOT_ASKED = Answer(outcome="unknown", found="not asked: suppressed")

_SIGN_IN = "sign in with `aws sso login` or `aws configure`, or name a profile that works in AWS_PROFILE"


def preflight(plan: Plan, account: Account, *, suppressed: Collection[str] = ()) -> tuple[Finding, ...]:
    """Ask the account everything about the plan. A suppressed check is not asked, and its finding says so."""
    (findings,) = preflight_each([(plan, account)], suppressed=suppressed)
    return findings


def preflight_each(
    plans: Sequence[tuple[Plan, Account]], *, suppressed: Collection[str] = ()
) -> tuple[tuple[Finding, ...], ...]:
    """The findings about several plans, each with the account it is asked of, in their order."""
    names = [name for name in dict.fromkeys((*_BEGUN_FIRST, *CHECKS)) if name not in suppressed]
    with ThreadPoolExecutor(max(1, len(names) * len(plans))) as threads:
        asked = {
            (name, place): threads.submit(_ask, name, plan, account)
            for name in names
            for place, (plan, account) in enumerate(plans)
        }
    return tuple(
        tuple(_findings({name: asked[name, place].result() if name in names else _NOT_ASKED for name in CHECKS}))
        for place in range(len(plans))
    )


def _ask(name: str, plan: Plan, account: Account) -> Answer | None:
    if name in _OF_THE_NODES and "cluster" not in plan.stacks:
        return None
    try:
        return CHECKS[name](plan, account)
    except NotSignedInError as error:
        return Answer(outcome="unknown", found=str(error), fix=_SIGN_IN)
    except UnavailableError as error:
        return Answer(outcome="unknown", found=str(error))


def _findings(answers: Mapping[str, Answer | None]) -> Iterator[Finding]:
    signed_out: str | None = None
    for name, given in answers.items():
        answer = given
        if answer is not None and answer.fix == _SIGN_IN:  # the same for all: it is told once
            answer = answer if signed_out is None else Answer(outcome="unknown", found=f"not asked: see {signed_out}")
            signed_out = signed_out or name
        if answer is not None:
            yield Finding(
                check=name,
                outcome=answer.outcome,
                found=answer.found,
                needed=answer.needed,
                fix=answer.fix,
                suppressed=answer is _NOT_ASKED,
            )
