"""`trn quota`: what the plan lacks of a quota, the request for it, and where that stands."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NoReturn

import click

from trainium_cli.command_group import CommandGroup
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.sagemaker_quota_command import sagemaker
from trainium_cli.plan_options import plan_options, read_plan
from trainium_cli.terminal import console, pairs, print_json, table
from trainium_core.engines.ec2.checks.quota_check import check_quota
from trainium_core.plan import Plan
from trainium_core.preflight.aws_account import AwsAccount
from trainium_core.quotas.aws_requests import AlreadyRequestedError, AwsQuotaRequests
from trainium_core.quotas.ec2 import quota_need
from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import REMEDIES, RequestRefusedError, UnavailableError
from trainium_runtime.quota import QuotaRequest, QuotaState
from trainium_runtime.quota_check import SERVICE, evaluate_quota, plain, quota_state

_EXIT_CODES = {
    "pass": ExitCode.OK,
    "warn": ExitCode.OK,
    "fail": ExitCode.NOT_READY,
    "unknown": ExitCode.UNKNOWN,
}


@click.group(cls=CommandGroup)
def quota() -> None:
    """Show what the plan lacks of a quota, and ask AWS for it.

    The quota is the one for the plan's instance family, region and purchase option. `request` asks AWS for more of it;
    nothing else that `trn` does changes a quota.
    """


quota.add_command(sagemaker)


@quota.command()
@plan_options
def status(overrides: tuple[str, ...], cdk_json: Path | None, as_json: bool) -> None:
    """Show the quota, what is used of it, and the requests for more.

    Exit code 0: there is room for the plan. 1: there is none. 3: could not tell.
    """
    plan = read_plan(cdk_json, overrides, as_json=as_json)
    state, result = _state_and_result(plan)
    requests = state.requests if state else ()
    if as_json:
        print_json({**asdict(result), "requests": [asdict(request) for request in requests]})
    elif _is_unanswered(result):
        _show_unanswered(result)
    else:
        _show_result(result)
        if state:
            _show_requests(requests)
    raise click.exceptions.Exit(_EXIT_CODES[result.outcome])


@quota.command()
@plan_options
@click.option("--yes", is_flag=True, help="Ask AWS without asking you first, for scripts.")
def request(overrides: tuple[str, ...], cdk_json: Path | None, as_json: bool, yes: bool) -> None:
    """Ask AWS for what the plan lacks of its quota, and no more.

    Shows the request and asks before it is made. Asks for nothing when there is room, or when a request is open.
    Exit code 0: asked, or nothing to ask for. 1: not asked, though there is no room. 3: could not tell.
    """
    if as_json and not yes:
        raise click.UsageError("--json asks no questions: give --yes as well")
    plan = read_plan(cdk_json, overrides, as_json=as_json)
    state, result = _state_and_result(plan)
    if not as_json and _is_unanswered(result):
        _show_unanswered(result)
    elif not as_json:
        _show_result(replace(result, fix=""))
    if state is None or state.has_room_whatever_counts:
        message = "Nothing was asked for." if result.outcome == "unknown" else "Nothing to ask for."
        _end(_EXIT_CODES[result.outcome], message, state=state, as_json=as_json)
    if state.open_request:
        _end_with_open(state, as_json=as_json)
    if not as_json:
        _show_request(state)
    if not yes and not click.confirm("Ask AWS for this?"):
        _end(ExitCode.NOT_READY, "Nothing was asked for.", state=state, as_json=as_json)
    _request_increase(state, as_json=as_json)


def _request_increase(state: QuotaState, *, as_json: bool) -> NoReturn:
    need = state.need
    try:
        made = AwsQuotaRequests(need.region).request_increase(SERVICE, need.code, desired=state.sufficient_limit)
    except AlreadyRequestedError:
        # Made since it was looked for, by somebody else or by a first attempt whose answer got lost.
        _end_with_open(_read_again(state), as_json=as_json)
    except RequestRefusedError as error:
        _end(ExitCode.NOT_READY, f"AWS did not take the request: {error}", state=state, as_json=as_json)
    state = replace(state, requests=(made,))
    message = f"Asked: request {made.request_id} is {made.status}. `trn quota status` follows it."
    _end(ExitCode.OK, message, state=state, as_json=as_json)


def _state_and_result(plan: Plan) -> tuple[QuotaState | None, CheckResult]:
    """The state of the plan's quota with the requests for more, and what preflight makes of it."""
    if "cluster" not in plan.stacks:
        found = f"trn:stacks={','.join(plan.stacks)} takes of no EC2 quota: `trn quota sagemaker` shows SageMaker's"
        return None, CheckResult(outcome="warn", found=found)
    account, need = AwsAccount(plan.region), quota_need(plan)
    if need is None:
        return None, check_quota(plan, account)
    try:
        state = replace(quota_state(need, account), requests=tuple(account.quota_requests(SERVICE, need.code)))
    except UnavailableError as error:
        return None, CheckResult(outcome="unknown", found=error.reason, fix=error.remedy)
    return state, evaluate_quota(state)


def _read_again(state: QuotaState) -> QuotaState:
    try:
        requests = AwsAccount(state.need.region).quota_requests(SERVICE, state.need.code)
    except UnavailableError:
        requests = ()
    return replace(state, requests=tuple(requests))


def _show_result(result: CheckResult) -> None:
    rows = [("found", result.found), ("needed", result.needed), ("outcome", result.outcome), ("to do", result.fix)]
    console().print(pairs([(label, value) for label, value in rows if value], label_width=8))


def _is_unanswered(result: CheckResult) -> bool:
    return result.outcome == "unknown" and result.fix in REMEDIES


def _show_unanswered(result: CheckResult) -> None:
    click.echo(f"Could not tell: {result.found}: {result.fix}", err=True)


def _show_request(state: QuotaState) -> None:
    need, use = state.need, state.use
    rows = [
        ("quota", f"{need.code}, {need.name}, in {need.region}"),
        ("now", f"{plain(state.quota.limit)} vCPUs"),
        ("asked", f"{plain(state.sufficient_limit)} vCPUs"),
        ("that is", f"{plain(use.certain + use.in_blocks)} used + {need.nodes} x {need.vcpus_per_node} for the plan"),
    ]
    console().print("\nThe request:", style="bold")
    console().print(pairs(rows, label_width=8))


def _show_requests(requests: tuple[QuotaRequest, ...]) -> None:
    if not requests:
        console().print("\nNo increase has been asked for in the last 90 days.")
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
    columns = ["Asked", "vCPUs", "State", "Changed", "Case", "Request"]
    console().print()
    console().print(table(columns, rows, right=["vCPUs"], wrapping=["Request"]))


def _end_with_open(state: QuotaState, *, as_json: bool) -> NoReturn:
    known = state.open_request
    if known is None:
        message = "AWS says that a request is open, but shows none: ask again with `trn quota status`."
        _end(ExitCode.UNKNOWN, message, state=state, as_json=as_json)
    case = f", case {known.case_id}" if known.case_id else ""
    message = (
        f"A request is open already: {known.request_id} for {plain(known.desired)} vCPUs, {known.status} since "
        f"{known.created:%Y-%m-%d}{case}. `trn quota status` follows it."
    )
    if known.desired >= state.sufficient_limit:
        _end(ExitCode.OK, message, state=state, as_json=as_json)
    message += f" The plan needs {plain(state.sufficient_limit)}: ask AWS Support to make it that, there can be one."
    _end(ExitCode.NOT_READY, message, state=state, as_json=as_json)


def _end(code: ExitCode, message: str, *, state: QuotaState | None, as_json: bool) -> NoReturn:
    if as_json:
        made: dict[str, Any] | None = asdict(state.open_request) if state and state.open_request else None
        print_json({"message": message, "request": made})
    else:
        console().print(f"\n{message}", style="bold")
    raise click.exceptions.Exit(code)
