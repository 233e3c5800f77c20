"""`trn deploy`: checks the account, deploys with the CDK CLI, and explains a failure."""

from collections.abc import Sequence
from pathlib import Path

import click

from trainium_cli.cdk_program import CdkRun, find_cdk
from trainium_cli.cluster.deployment import cdk_folder, deploy_stacks, is_interactive
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.interruption import interrupt_message
from trainium_cli.invocation import Invocation, context_options, pass_invocation
from trainium_cli.mistakes import mistake
from trainium_cli.plan.plan_choices import suppress_option
from trainium_cli.plan.preflight_command import EXIT_CODES, refuse_without_access
from trainium_cli.plan.preflight_report import show_findings
from trainium_cli.terminal import question, say
from trainium_cli.waiting import waiting
from trainium_core.aws.account import AwsAccount
from trainium_core.plan import Plan
from trainium_core.preflight.finding import Finding, verdict
from trainium_core.preflight.runner import CHECKS, preflight

_BOOTSTRAP, _PROJECT = "bootstrap", "project"
_BOOTSTRAPPING = "Interrupted: the cluster was not deployed. CloudFormation may still deploy the CDK bootstrap."


@click.command()
@context_options
@suppress_option(CHECKS, meaning="Skip this check of `trn preflight`.")
@click.option("--replace-nodes", is_flag=True, help="Deploy even if this terminates running nodes.")
@click.option("--cluster", metavar="NAME", help="Deploy this cluster of the plan, whichever project deployed it.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation, for scripts.")
@pass_invocation
@interrupt_message("Interrupted: nothing was deployed.")
def deploy(
    invocation: Invocation, suppressed: frozenset[str], replace_nodes: bool, cluster: str | None, yes: bool
) -> ExitCode:
    """Deploy the plan if the account is ready.

    Runs the checks of `trn preflight` first, and stops if one fails or is unknown; if only the CDK bootstrap is
    missing or too old, offers to run `cdk bootstrap`. If nodes are running, a change set shows the changes and how many
    of these nodes would be terminated; if any would, you confirm, or pass --replace-nodes. Then the command shows IAM
    changes, stacks, nodes, dollars per hour and the end of the pilot, and asks for confirmation. `cdk deploy` creates
    or updates the stacks. If it fails, the command shows the reason and the next step.

    A cluster that another project deployed (trn:project_id) is not changed, and a project with a cluster deploys no
    second one, as after a change of trn:cluster_name, unless --cluster names the cluster.

    With --yes, the command does not prompt, run `cdk bootstrap`, or show IAM changes and the price. It terminates
    running nodes only with --replace-nodes.

    Exit code 0: deployed. 1: not ready, not confirmed, or failed. 3: unknown. 4: running nodes would be
    terminated, and you did not confirm this.
    """
    folder = cdk_folder(invocation.cdk_json)
    plan = invocation.plan()
    if not yes and not is_interactive():
        raise click.UsageError("not a terminal: pass --yes to confirm")
    if cluster not in (None, plan.cluster_name):
        raise mistake("--cluster", cluster, allowed=plan.cluster_name, fix="set trn:cluster_name to deploy another")
    if cluster:
        suppressed |= {_PROJECT}
    findings = _run_preflight(plan, suppressed)
    if not yes and _lacks_only_the_bootstrap(findings) and _bootstrapped(findings, folder):
        findings = _run_preflight(plan, suppressed)
    refuse_without_access(findings)
    show_findings(plan, findings, briefly=not yes and verdict(findings) == "ready")
    code = EXIT_CODES[verdict(findings)]
    if code is not ExitCode.OK:
        raise CliError("Nothing was deployed.", code)
    return deploy_stacks(
        plan,
        plan.stacks,
        overrides=invocation.overrides,
        folder=folder,
        yes=yes,
        replace_nodes=replace_nodes,
    )


def _run_preflight(plan: Plan, suppressed: frozenset[str]) -> Sequence[Finding]:
    with waiting(f"Asking AWS in {plan.region} ..."):
        return preflight(plan, AwsAccount(plan.region), suppressed=suppressed)


def _lacks_only_the_bootstrap(findings: Sequence[Finding]) -> bool:
    obstacles = [finding for finding in findings if finding.outcome in ("fail", "unknown") and not finding.suppressed]
    return [finding.check for finding in obstacles] == [_BOOTSTRAP]


def _bootstrapped(findings: Sequence[Finding], folder: Path) -> bool:
    """Offer to run `cdk bootstrap`. Returns whether it ran and succeeded."""
    (bootstrap,) = [finding for finding in findings if finding.check == _BOOTSTRAP]
    command = bootstrap.fix.partition(";")[0].removeprefix("run: ").split()
    if command[:2] != ["cdk", "bootstrap"]:
        return False
    say(f"Only the CDK bootstrap prevents the deployment: {bootstrap.found}.")
    if not click.confirm(
        question(f"Run `{' '.join(command)}` now? It creates a bucket and roles, and costs almost nothing.")
    ):
        return False
    with interrupt_message(_BOOTSTRAPPING):
        return CdkRun(find_cdk(folder), command[1:], folder).in_terminal() == 0
