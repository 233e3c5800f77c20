"""`trn deploy`: checks the account first, then deploys with the CDK CLI, and explains a failure."""

from collections.abc import Sequence
from pathlib import Path

import click

from trainium_cli.cdk_program import CdkRun, find_cdk
from trainium_cli.cluster.deployment import cdk_folder, deploy_stacks, is_interactive
from trainium_cli.exit_codes import ExitCode
from trainium_cli.interruption import going_on
from trainium_cli.plan.preflight_command import EXIT_CODES
from trainium_cli.plan.preflight_report import show_findings
from trainium_cli.plan.suppress_option import suppress_option
from trainium_cli.plan_options import context_options, read_plan
from trainium_cli.terminal import question, say
from trainium_cli.waiting import waiting
from trainium_core.plan import Plan
from trainium_core.preflight.aws_account import AwsAccount
from trainium_core.preflight.finding import Finding, verdict
from trainium_core.preflight.runner import CHECKS, no_access, preflight

_BOOTSTRAP = "bootstrap"


@click.command()
@context_options
@suppress_option(CHECKS, meaning="Deploy whatever this check of preflight would say.")
@click.option("--replace-nodes", is_flag=True, help="Deploy also if running nodes end by it.")
@click.option("--show-iam", is_flag=True, help="Let the CDK CLI show what changes of IAM, and ask, before it deploys.")
@click.option("-y", "--yes", is_flag=True, help="Deploy without asking anything, for scripts.")
@going_on("Interrupted: nothing was deployed.")
def deploy(
    overrides: tuple[str, ...],
    cdk_json: Path | None,
    suppressed: frozenset[str],
    replace_nodes: bool,
    show_iam: bool,
    yes: bool,
) -> None:
    """Deploy the plan, if the account is ready for it.

    First asks what `trn preflight` asks, and stops unless all is well; offers to bootstrap where that alone is missing.
    If nodes run, a change set then shows what changes and how many of them would end, and you are asked. Then stacks,
    nodes, dollars by the hour and the end are shown, and you are asked once more; --yes answers both. `cdk deploy`
    makes the stacks. When it fails, the reason is shown, and what to do.

    Exit code 0: deployed. 1: not ready, or failed. 3: could not tell. 4: with --yes alone, if running nodes would end.
    """
    folder = cdk_folder(cdk_json)
    plan = read_plan(cdk_json, overrides, as_json=False)
    if not yes and not is_interactive():
        raise click.UsageError("nobody is there to be asked: give --yes")
    findings = _run_preflight(plan, suppressed)
    if not yes and _lacks_only_the_bootstrap(findings) and _bootstrapped(findings, folder):
        findings = _run_preflight(plan, suppressed)
    why_not = no_access(findings)
    if why_not:
        click.echo(f"Could not tell: {why_not}", err=True)
    else:
        show_findings(plan, findings, briefly=not yes and verdict(findings) == "ready")
    code = EXIT_CODES[verdict(findings)]
    if code is not ExitCode.OK:
        click.echo("Nothing was deployed.", err=True)
        raise click.exceptions.Exit(code)
    ended = deploy_stacks(
        plan,
        plan.stacks,
        overrides=overrides,
        folder=folder,
        yes=yes,
        replace_nodes=replace_nodes,
        show_iam=show_iam,
    )
    raise click.exceptions.Exit(ended)


def _run_preflight(plan: Plan, suppressed: frozenset[str]) -> Sequence[Finding]:
    with waiting(f"Asking AWS in {plan.region} ..."):
        return preflight(plan, AwsAccount(plan.region), suppressed=suppressed)


def _lacks_only_the_bootstrap(findings: Sequence[Finding]) -> bool:
    return [one.check for one in findings if one.outcome in ("fail", "unknown") and not one.suppressed] == [_BOOTSTRAP]


def _bootstrapped(findings: Sequence[Finding], folder: Path) -> bool:
    """Whether somebody wanted the CDK to make its own stack now, and it is there."""
    (bootstrap,) = [one for one in findings if one.check == _BOOTSTRAP]
    command = bootstrap.fix.removeprefix("run: ").split()
    if command[:2] != ["cdk", "bootstrap"]:
        return False
    say(f"All is ready but for the CDK's own stack: {bootstrap.found}.")
    if not click.confirm(
        question(f"Run `{' '.join(command)}` now? It makes a bucket and roles, and costs next to nothing.")
    ):
        return False
    return CdkRun(find_cdk(folder), command[1:], folder).in_terminal() == 0
