"""`trn deploy`: checks the account, deploys with the CDK CLI, and explains a failure."""

from collections.abc import Sequence
from pathlib import Path

import click

from trainium_cli.cluster.deployment import cdk_folder, deploy_stacks, is_interactive
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.interruption import interrupt_message
from trainium_cli.invocation import Invocation, context_options, pass_invocation
from trainium_cli.mistakes import mistake
from trainium_cli.plan.plan_choices import suppress_option
from trainium_cli.plan.preflight_command import EXIT_CODES, refuse_without_access
from trainium_cli.plan.preflight_report import show_findings
from trainium_cli.terminal import echo
from trainium_cli.waiting import waiting
from trainium_core.aws.account import AwsAccount
from trainium_core.plan import Plan
from trainium_core.preflight.finding import Finding, verdict
from trainium_core.preflight.runner import CHECKS, preflight

_BOOTSTRAP, _PROJECT = "bootstrap", "project"


@click.command()
@suppress_option(CHECKS, meaning="Skip this check of `trn preflight`.")
@click.option("--replace-nodes", is_flag=True, help="Deploy even if this terminates running nodes.")
@click.option("--cluster", metavar="NAME", help="Deploy this cluster of the plan, whichever project deployed it.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation, for scripts.")
@context_options
@pass_invocation
@interrupt_message("Interrupted: nothing was deployed.")
def deploy(
    invocation: Invocation, suppressed: frozenset[str], replace_nodes: bool, cluster: str | None, yes: bool
) -> ExitCode:
    """Deploy the plan if the account is ready.

    Runs the checks of `trn preflight` first, and stops if one fails or is unknown; if only the CDK bootstrap is
    missing or too old, the deployment begins with `cdk bootstrap`. If nodes are running, a change set shows the
    changes and how many of these nodes would be terminated; if any would, you confirm, or pass --replace-nodes. Then
    the command shows stacks, new IAM roles or changes of permissions, nodes, dollars per hour and the end of the pilot,
    and asks for confirmation.
    `cdk deploy` creates or updates the stacks. If it fails, the command shows the reason and the next step.

    If the first deployment of a cluster fails because its zone has no capacity, the command tries the other zones of
    the region that offer the type, unless a setting or a reservation determines the zone. It writes the zone to
    cdk.json, which is as before if all zones fail.

    A cluster that another project deployed (trn:project_id) is not changed, and a project with a cluster deploys no
    second one, as after a change of trn:cluster_name, unless --cluster names the cluster.

    With --yes, the command does not prompt, run `cdk bootstrap`, or show IAM changes. It terminates running nodes only
    with --replace-nodes.

    Exit code 0: deployed. 1: not ready, not confirmed, or failed. 3: unknown.
    """
    folder = cdk_folder(invocation.cdk_json)
    plan = invocation.plan()
    if not yes and not is_interactive():
        raise click.UsageError("not a terminal: pass --yes to confirm")
    if cluster not in (None, plan.cluster_name):
        raise mistake("--cluster", cluster, allowed=plan.cluster_name, fix="set trn:cluster_name to deploy another")
    if cluster:
        suppressed |= {_PROJECT}
    code = deploy_plan(
        invocation, plan, folder, suppressed=suppressed, yes=yes, bootstraps=not yes, replace_nodes=replace_nodes
    )
    if code is ExitCode.OK:
        echo("Next: `trn run SCRIPT` runs a job, `trn status` shows the cluster and its price, `trn down` destroys it.")
    return code


def deploy_plan(
    invocation: Invocation,
    plan: Plan,
    folder: Path,
    *,
    suppressed: frozenset[str] = frozenset(),
    yes: bool,
    bootstraps: bool,
    replace_nodes: bool = False,
) -> ExitCode:
    """Check the account, and deploy the plan.

    Args:
        invocation: The options.
        plan: The plan.
        folder: Folder of the app's cdk.json.
        suppressed: Names of checks to skip.
        yes: Do not prompt.
        bootstraps: Run `cdk bootstrap` if nothing else is missing.
        replace_nodes: Running nodes may be terminated without confirmation.

    Returns:
        OK if deployed, NOT_READY if the CDK CLI failed.

    Raises:
        CliError: Nothing was deployed.
        UnavailableError: AWS could not be read.
    """
    with waiting(f"Asking AWS in {plan.region} ..."):
        findings = preflight(
            plan, AwsAccount(plan.region), suppressed=suppressed, qualifier=invocation.bootstrap_qualifier
        )
    refuse_without_access(findings)
    bootstrap = _bootstrap_arguments(findings) if bootstraps else ()
    if bootstrap:
        findings = [finding for finding in findings if finding.check != _BOOTSTRAP]
    show_findings(plan, findings, briefly=True)
    code = EXIT_CODES[verdict(findings)]
    if code is not ExitCode.OK:
        raise CliError("Nothing was deployed.", code)
    code = deploy_stacks(
        plan,
        plan.stacks,
        overrides=invocation.overrides,
        folder=folder,
        yes=yes,
        replace_nodes=replace_nodes,
        bootstrap=bootstrap,
    )
    if code is ExitCode.OK and plan.pilot.notify_email and not invocation.reaches_aws(plan.region):
        echo(f"No e-mail reaches {plan.pilot.notify_email}: the embedded AWS sends none.")
    return code


def _bootstrap_arguments(findings: Sequence[Finding]) -> Sequence[str]:
    """The arguments of the CDK CLI that bootstrap the account; empty if this is not all that is missing."""
    obstacles = [finding for finding in findings if finding.outcome in ("fail", "unknown") and not finding.suppressed]
    if [finding.check for finding in obstacles] != [_BOOTSTRAP]:
        return ()
    command = obstacles[0].fix.partition(";")[0].removeprefix("run: ").split()
    return command[1:] if command[:2] == ["cdk", "bootstrap"] else ()
