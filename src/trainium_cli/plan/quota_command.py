"""`trn quota`: the quota that the plan needs, and requests for an increase."""

from dataclasses import asdict, replace
from typing import Any

import click

from trainium_cli.exit_codes import CHECK_EXIT_CODES, ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.lazy_group import CommandGroup
from trainium_cli.terminal import console, pairs, print_json, table
from trainium_core.aws.account import AwsAccount
from trainium_core.aws.quota_requests import AlreadyRequestedError, AwsQuotaRequests
from trainium_core.engines.ec2.checks.quota_check import check_quota
from trainium_core.engines.registry import CLUSTER, ENGINES, engines_with_check
from trainium_core.plan import Plan
from trainium_core.preflight.finding import worst_result
from trainium_core.quotas.ec2 import quota_need
from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import REMEDIES, RequestRefusedError, UnavailableError
from trainium_runtime.quota import QuotaRequest, QuotaState
from trainium_runtime.quota_check import SERVICE, evaluate_quota, plain, quota_state


@click.group(cls=CommandGroup)
def quota() -> None:
    """Compare the plan with its quota, and request an increase.

    The EC2 quota is that of the plan's instance family, region and purchase option. SageMaker has
    separate quotas. `request` requests an increase of the EC2 quota; no other command changes a quota.
    """


@quota.command()
@plan_options
@pass_invocation
def status(invocation: Invocation) -> ExitCode:
    """Show the quota, its usage, and requests for an increase.

    Also shows the checks of the other services in trn:stacks, most of which are about quotas.

    Exit code 0: sufficient for the plan. 1: insufficient, or a check failed. 3: unknown.
    """
    plan = invocation.plan()
    state, result = _state_and_result(plan)
    requests = state.requests if state else ()
    of_services = _service_results(plan)
    if invocation.as_json:
        others = {name: asdict(of_service) for name, of_service in of_services.items()}
        print_json({**asdict(result), "requests": [asdict(request) for request in requests], "services": others})
    else:
        _refuse_unanswered(result)
        _show_result(result)
        if state:
            _show_requests(requests)
        for name, of_service in of_services.items():
            console().print(f"\n{name}", style="bold")
            _show_result(of_service)
    return CHECK_EXIT_CODES[worst_result([result, *of_services.values()]).outcome]


@quota.command()
@click.option("--yes", is_flag=True, help="Do not ask for confirmation, for scripts.")
@plan_options
@pass_invocation
def request(invocation: Invocation, yes: bool) -> ExitCode:
    """Request the quota increase that the plan needs.

    Shows the request and asks for confirmation. Requests nothing if the quota is sufficient or a request is open.

    Exit code 0: requested now or earlier, or not needed. 1: needed, but not requested or not enough. 3: unknown.
    """
    invocation.require_yes(yes)
    plan = invocation.plan()
    state, result = _state_and_result(plan)
    if not invocation.as_json:
        _refuse_unanswered(result)
        _show_result(replace(result, fix=""))
    if state is None or state.fits_in_worst_case:
        message = "Nothing was requested." if result.outcome == "unknown" else "Nothing to request."
        return _end(invocation, CHECK_EXIT_CODES[result.outcome], message, state)
    if state.open_request:
        return _end_with_open(invocation, state)
    if not invocation.as_json:
        _show_request(state)
    if not yes and not click.confirm("Send this request to AWS?"):
        return _end(invocation, ExitCode.NOT_READY, "Nothing was requested.", state)
    return _request_increase(invocation, state)


def _request_increase(invocation: Invocation, state: QuotaState) -> ExitCode:
    need = state.need
    try:
        made = AwsQuotaRequests(need.region).request_increase(SERVICE, need.code, desired=state.sufficient_limit)
    except AlreadyRequestedError:
        # Created since the quota was read: by another user, or by an attempt whose response was lost.
        return _end_with_open(invocation, _read_again(state))
    except RequestRefusedError as error:
        return _end(invocation, ExitCode.NOT_READY, f"AWS refused the request: {error}", state)
    message = f"Sent: request {made.request_id} is {made.status}. `trn quota status` shows its status."
    return _end(invocation, ExitCode.OK, message, replace(state, requests=(made,)))


def _service_results(plan: Plan) -> dict[str, CheckResult]:
    """The result of the check of each engine of the plan other than the cluster, by engine."""
    account = AwsAccount(plan.region)
    found: dict[str, CheckResult] = {}
    for key in (key for key in plan.stacks if key != CLUSTER.key):
        for check in ENGINES[key].checks().values():
            try:
                result = check(plan, account)
            except UnavailableError as error:
                result = CheckResult(outcome="unknown", found=error.reason, fix=error.remedy)
            if result is not None:
                found[key] = result
    return found


def _state_and_result(plan: Plan) -> tuple[QuotaState | None, CheckResult]:
    """The state of the plan's quota with its increase requests, and the preflight result."""
    if not engines_with_check("quota") & {*plan.stacks}:
        found = f"trn:stacks={','.join(plan.stacks)} uses no EC2 quota"
        return None, CheckResult(outcome="pass", found=found)
    account, need = AwsAccount(plan.region), quota_need(plan)
    if need is None:
        return None, check_quota(plan, account)
    quotas = account.quotas
    try:
        state = replace(quota_state(need, quotas), requests=tuple(quotas.quota_requests(SERVICE, need.code)))
    except UnavailableError as error:
        return None, CheckResult(outcome="unknown", found=error.reason, fix=error.remedy)
    return state, evaluate_quota(state)


def _read_again(state: QuotaState) -> QuotaState:
    try:
        requests = AwsAccount(state.need.region).quotas.quota_requests(SERVICE, state.need.code)
    except UnavailableError:
        requests = ()
    return replace(state, requests=tuple(requests))


def _show_result(result: CheckResult) -> None:
    rows = [("found", result.found), ("needed", result.needed), ("outcome", result.outcome), ("to do", result.fix)]
    console().print(pairs([(label, value) for label, value in rows if value], label_width=8))


def _refuse_unanswered(result: CheckResult) -> None:
    if result.outcome == "unknown" and result.fix in REMEDIES:
        raise UnavailableError(result.found, remedy=result.fix)


def _show_request(state: QuotaState) -> None:
    need, use = state.need, state.use
    rows = [
        ("quota", f"{need.code}, {need.name}, in {need.region}"),
        ("now", f"{plain(state.quota.limit)} vCPUs"),
        ("request", f"{plain(state.sufficient_limit)} vCPUs"),
        ("basis", f"{plain(use.certain + use.in_blocks)} used + {need.nodes} x {need.vcpus_per_node} for the plan"),
    ]
    console().print("\nThe request:", style="bold")
    console().print(pairs(rows, label_width=8))


def _show_requests(requests: tuple[QuotaRequest, ...]) -> None:
    if not requests:
        console().print("\nNo increase was requested in the last 90 days.")
        return
    rows = [
        [
            f"{request.created:%Y-%m-%d %H:%M}",
            plain(request.desired),
            request.status,
            f"{request.updated:%Y-%m-%d %H:%M}" if request.updated else "",
            request.case_id or "",
            request.request_id,
        ]
        for request in requests
    ]
    columns = ["Requested", "vCPUs", "State", "Changed", "Case", "Request"]
    console().print()
    console().print(table(columns, rows, right=["vCPUs"], wrapping=["Request"]))


def _end_with_open(invocation: Invocation, state: QuotaState) -> ExitCode:
    known = state.open_request
    if known is None:
        message = "AWS reports an open request but lists none: check again with `trn quota status`."
        return _end(invocation, ExitCode.UNKNOWN, message, state)
    case = f", case {known.case_id}" if known.case_id else ""
    message = (
        f"A request is already open: {known.request_id} for {plain(known.desired)} vCPUs, {known.status} since "
        f"{known.created:%Y-%m-%d}{case}. `trn quota status` shows its status."
    )
    if known.desired >= state.sufficient_limit:
        return _end(invocation, ExitCode.OK, message, state)
    message += (
        f" The plan needs {plain(state.sufficient_limit)}: ask AWS Support to raise the request. Only one can be open."
    )
    return _end(invocation, ExitCode.NOT_READY, message, state)


def _end(invocation: Invocation, code: ExitCode, message: str, state: QuotaState | None) -> ExitCode:
    """Show the result of the request. Returns the given code."""
    if invocation.as_json:
        made: dict[str, Any] | None = asdict(state.open_request) if state and state.open_request else None
        print_json({"message": message, "request": made})
    else:
        console().print(f"\n{message}", style="bold")
    return code
