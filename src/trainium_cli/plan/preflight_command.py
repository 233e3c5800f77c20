"""`trn preflight`: whether the plan can be deployed to the account whose credentials are found."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from trainium_cli.completion_values import complete_regions
from trainium_cli.exit_codes import ExitCode
from trainium_cli.mistakes import unknown_name
from trainium_cli.plan.preflight_report import findings_as_json, show_findings, show_regions
from trainium_cli.plan.suppress_option import suppress_option
from trainium_cli.plan_options import plan_options, read_plan, refuse
from trainium_cli.terminal import print_json
from trainium_cli.waiting import waiting
from trainium_core.engines.projections import Check
from trainium_core.permissions.roles import CLOUDFORMATION, roles
from trainium_core.plan import Plan
from trainium_core.preflight.aws_account import AwsAccount
from trainium_core.preflight.finding import Verdict, verdict
from trainium_core.preflight.permissions_check import PRINCIPAL, check_permissions
from trainium_core.preflight.regions import preflight_in_regions
from trainium_core.preflight.runner import CHECKS, no_access
from trainium_core.preflight.runner import preflight as run_preflight
from trainium_core.problems import PlanError
from trainium_runtime.aws_service import ATTEMPTS, CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS, Clients

EXIT_CODES = {
    "ready": ExitCode.OK,
    "not ready": ExitCode.NOT_READY,
    "could not tell": ExitCode.UNKNOWN,
}


def _principal(_ctx: click.Context, _param: click.Parameter, given: str | None) -> str | None:
    if given is not None and not PRINCIPAL.fullmatch(given):
        raise click.BadParameter(
            f"{given!r} is no ARN of a role, user or group, such as "
            "arn:aws:iam::123456789012:role/cdk-hnb659fds-cfn-exec-role-123456789012-us-west-2"
        )
    return given


@click.command(
    epilog=f"""
    All checks run in parallel. A connection may take {CONNECT_TIMEOUT_SECONDS} s, a response {READ_TIMEOUT_SECONDS} s;
    a call that fails or is throttled is made {ATTEMPTS} times in all. What has no response then is unknown.

    With several regions, exit code 0 says that one of them is ready.
    """
)
@plan_options
@suppress_option(CHECKS)
@click.option(
    "--regions",
    metavar="REGION,...",
    shell_complete=complete_regions,
    help="Ask in these regions instead of the plan's.",
)
@click.option("--every-region", is_flag=True, help="Ask in every region that offers the type.")
@click.option(
    "--role",
    "principal",
    metavar="ARN",
    callback=_principal,
    help="Ask IAM's policy simulator besides whether this role, user or group may do what it must.",
)
@click.option(
    "--must",
    type=click.Choice(tuple(roles())),
    default=CLOUDFORMATION,
    show_default=True,
    help="What it must: a role of `trn permissions`.",
)
def preflight(
    overrides: tuple[str, ...],
    cdk_json: Path | None,
    as_json: bool,
    suppressed: frozenset[str],
    regions: str | None,
    every_region: bool,
    principal: str | None,
    must: str,
) -> None:
    """Ask the AWS account whether the plan can be deployed.

    Only reads, with the credentials that boto3 finds. Says nothing about free capacity.
    """
    plan = read_plan(cdk_json, overrides, as_json=as_json)
    more = {"permissions": partial(check_permissions, principal=principal, role=must)} if principal else {}
    if regions or every_region:
        try:
            outcome = _in_regions(plan, _chosen_regions(plan, regions, every_region), suppressed, more, as_json=as_json)
        except PlanError as error:
            refuse(error, as_json=as_json)
    else:
        outcome = _in_its_region(plan, suppressed, more, overridden=bool(overrides), as_json=as_json)
    raise click.exceptions.Exit(EXIT_CODES[outcome])


def _in_its_region(
    plan: Plan, suppressed: frozenset[str], more: Mapping[str, Check], *, overridden: bool, as_json: bool
) -> Verdict:
    with waiting(f"Asking AWS in {plan.region} ..."):
        findings = run_preflight(plan, AwsAccount(plan.region), suppressed=suppressed, more=more)
    why_not = no_access(findings)
    if as_json:
        print_json(findings_as_json(findings))
    elif why_not:
        click.echo(f"Could not tell: {why_not}", err=True)
    else:
        show_findings(plan, findings, overridden=overridden)
    return verdict(findings)


def _in_regions(
    plan: Plan, regions: Sequence[str], suppressed: frozenset[str], more: Mapping[str, Check], *, as_json: bool
) -> Verdict:
    clients = Clients()
    with waiting(f"Asking AWS in {len(regions)} regions ..."):
        found = preflight_in_regions(
            plan, regions, lambda region: AwsAccount(region, clients=clients), suppressed=suppressed, more=more
        )
    reasons = [no_access(findings) for findings in found.values()]
    if as_json:
        print_json({"regions": {region: findings_as_json(findings) for region, findings in found.items()}})
    elif all(reasons):
        click.echo(f"Could not tell: {reasons[0]}", err=True)
    else:
        show_regions(plan, found)
    outcomes = {verdict(findings) for findings in found.values()}
    return next(outcome for outcome in _FROM_GOOD_TO_BAD if outcome in outcomes)


_FROM_GOOD_TO_BAD: tuple[Verdict, ...] = ("ready", "could not tell", "not ready")


def _chosen_regions(plan: Plan, given: str | None, every_region: bool) -> tuple[str, ...]:
    offering = tuple(plan.type.zones)
    if every_region and given:
        raise click.UsageError("give --regions or --every-region, not both")
    if not given:
        return offering
    chosen = tuple(dict.fromkeys(region.strip() for region in given.split(",") if region.strip()))
    for region in chosen:
        if region not in offering:
            raise click.UsageError(unknown_name(f"region that offers {plan.instance_type}", region, offering))
    if not chosen:
        raise click.UsageError(f"--regions names none; known: {', '.join(offering)}")
    return chosen
