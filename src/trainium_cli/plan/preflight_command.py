"""`trn preflight`: whether the plan can be deployed to the account of the credentials."""

from collections.abc import Sequence
from functools import partial

import click
from click.core import ParameterSource

from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.plan.plan_choices import suppress_option
from trainium_cli.plan.preflight_report import findings_as_json, show_findings
from trainium_cli.terminal import print_json
from trainium_cli.waiting import waiting
from trainium_core.aws.account import AwsAccount
from trainium_core.permissions.roles import CLOUDFORMATION, roles
from trainium_core.preflight.finding import Finding, verdict
from trainium_core.preflight.permissions_check import PRINCIPAL, check_permissions
from trainium_core.preflight.runner import CHECKS, no_access
from trainium_core.preflight.runner import preflight as run_preflight
from trainium_runtime.aws_service import ATTEMPTS, CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS
from trainium_runtime.errors import UnavailableError

EXIT_CODES = {
    "ready": ExitCode.OK,
    "not ready": ExitCode.NOT_READY,
    "unknown": ExitCode.UNKNOWN,
}


def _principal(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not PRINCIPAL.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} is not the ARN of a role, user or group, such as "
            "arn:aws:iam::123456789012:role/cdk-hnb659fds-cfn-exec-role-123456789012-us-west-2"
        )
    return value


@click.command(
    epilog=f"""
    All checks run in parallel. A connection may take {CONNECT_TIMEOUT_SECONDS} s, a response {READ_TIMEOUT_SECONDS} s;
    a call that is throttled or not answered is tried {ATTEMPTS} times in total. The result of a call that fails is
    unknown.

    Exit code 0: ready, possibly with warnings. 1: a check failed. 3: no check failed, and one is unknown.
    """
)
@suppress_option(CHECKS)
@click.option(
    "--role",
    "principal",
    metavar="ARN",
    callback=_principal,
    help="Also ask the IAM policy simulator whether this role, user or group has the permissions of --must.",
)
@click.option(
    "--must",
    type=click.Choice(tuple(roles())),
    default=CLOUDFORMATION,
    show_default=True,
    help="The set of `trn permissions` that --role must have.",
)
@plan_options
@pass_invocation
def preflight(
    invocation: Invocation,
    suppressed: frozenset[str],
    principal: str | None,
    must: str,
) -> ExitCode:
    """Check whether the plan can be deployed to the AWS account.

    Read-only, with the credentials that boto3 finds. Does not check for free capacity.
    """
    if principal is None and click.get_current_context().get_parameter_source("must") is not ParameterSource.DEFAULT:
        raise click.UsageError("--must requires --role: pass the ARN of the role, user or group to check")
    plan = invocation.plan()
    more = {"permissions": partial(check_permissions, principal=principal, role=must)} if principal else {}
    with waiting(f"Asking AWS in {plan.region} ..."):
        findings = run_preflight(
            plan, AwsAccount(plan.region), suppressed=suppressed, more=more, qualifier=invocation.bootstrap_qualifier
        )
    if invocation.as_json:
        print_json(findings_as_json(findings))
    else:
        refuse_without_access(findings)
        show_findings(plan, findings, overridden=bool(invocation.overrides))
    return EXIT_CODES[verdict(findings)]


def refuse_without_access(findings: Sequence[Finding]) -> None:
    """Raise UnavailableError if no check could read anything from AWS, for a reason with a known remedy."""
    reason = no_access(findings)
    if reason:
        raise UnavailableError(reason)
