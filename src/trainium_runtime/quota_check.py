"""Whether a quota has room for what a cluster needs: used + needed <= limit, in vCPUs."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import UnavailableError
from trainium_runtime.quota import Quotas, QuotaState, quota_use
from trainium_runtime.quota_need import QuotaNeed

SERVICE = "ec2"


def check_need(need: QuotaNeed, account: Quotas) -> CheckResult:
    """Whether the account has room for the need.

    Raises:
        UnavailableError: The quota does not exist in the region, or it or its usage cannot be read.
    """
    state = quota_state(need, account)
    if state.fits_in_worst_case:
        return evaluate_quota(state)
    try:
        requests = tuple(account.quota_requests(SERVICE, need.code))
    except UnavailableError as error:
        # The result does not depend on increase requests.
        result = evaluate_quota(state)
        return replace(result, found=f"{result.found}; open requests for an increase are unknown: {error.reason}")
    return evaluate_quota(replace(state, requests=requests))


def quota_state(need: QuotaNeed, account: Quotas) -> QuotaState:
    """The need with the quota and its usage, read from the account.

    Raises:
        UnavailableError: The quota does not exist in the region, or it or its usage cannot be read.
    """
    on_demand = need.capacity == "on-demand"
    with ThreadPoolExecutor() as threads:
        running = threads.submit(account.running_instances, need.family)
        reserving = threads.submit(account.unused_reserved_vcpus, need.family) if on_demand else None
        quota = account.quota(SERVICE, need.code)
        if quota is None:
            raise UnavailableError(f"Service Quotas in {need.region} has no quota {need.code}, {need.name}")
        metered = (account.metered_use(quota.usage_metric) if quota.usage_metric else None) or 0
        instances, reserved = running.result(), reserving.result() if reserving else 0
    use = quota_use(need, instances=instances, reserved=reserved, metered=metered)
    if use.unseen:
        ended = sum(i.vcpus for i in account.ended_instances(need.family) if i.capacity == need.capacity)
        use = quota_use(need, instances=instances, reserved=reserved, metered=metered, ended=ended)
    return QuotaState(need=need, quota=quota, use=use)


def evaluate_quota(state: QuotaState) -> CheckResult:
    """Pass if there is room in the worst case; fail without room; unknown if it depends on Capacity Blocks."""
    usage, needed = "; ".join(_found(state)), f"{state.need.vcpus} vCPUs"
    if state.fits_in_worst_case:
        return CheckResult(outcome="pass", found=usage, needed=needed)
    outcome = "unknown" if state.has_room else "fail"
    return CheckResult(outcome=outcome, found=usage, needed=needed, fix=_fix(state))


def plain(vcpus: float) -> str:
    """A number of vCPUs without an exponent or trailing zeros."""
    return f"{vcpus:.15g}"


def _found(state: QuotaState) -> Iterator[str]:
    need, quota, use = state.need, state.quota, state.use
    free = max(0, state.free - use.own)
    yield (
        f"{plain(free)} of {plain(quota.limit)} vCPUs of {quota.code}, {need.name}, in {need.region}, are free"
        + (f" ({', '.join(_users(state))})" if use.certain else "")
    )
    if use.own:
        yield f"{use.own} of the needed vCPUs are already in use by the cluster"
    if quota.is_default:
        yield "that limit is AWS's default; this account has no applied value"
    if use.in_blocks and not state.fits_in_worst_case:
        yield f"{use.in_blocks} more run in Capacity Blocks, which may count as well"
    if state.open_request:
        request = state.open_request
        yield f"an increase to {plain(request.desired)} is requested: {request.status} since {request.created:%Y-%m-%d}"


def _users(state: QuotaState) -> Iterator[str]:
    use = state.use
    if use.running:
        yield f"{use.running} run"
    if use.reserved:
        yield f"{use.reserved} are reserved and unused"
    if use.unseen:
        yield f"{plain(use.unseen)} more by AWS's metric, which lags by minutes"


def _fix(state: QuotaState) -> str:
    limit, request = state.sufficient_limit, state.open_request
    if request is None:
        ways = [f"request {plain(limit)} vCPUs with `trn quota request` or in Service Quotas"]
    elif request.desired >= limit:
        ways = ["wait for the increase: `trn quota status` shows its status"]
    else:
        ways = [f"ask AWS Support to raise that request to {plain(limit)}: only one request can be open"]
    if state.nodes_that_fit:
        ways.append(f"set trn:nodes (in an app: nodes) to {state.nodes_that_fit}")
    if state.use.reserved:
        ways.append("launch into the reservation with trn:capacity=reservation")
    return "; or ".join(ways)
