"""Deploys the stacks of a plan with the CDK CLI, and explains a failure, for `trn deploy` and `trn extend`."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from trainium_cli.cdk_program import CdkRun, find_cdk
from trainium_cli.cluster.zone_attempts import BILLED, ZoneAttempts
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.interruption import interrupt_message
from trainium_cli.plan.plan_report import pilot_end_text, when_idle_text
from trainium_cli.terminal import console, echo, pairs, say
from trainium_cli.waiting import waiting
from trainium_core.aws.capacity import AwsCapacity
from trainium_core.aws.prices import AwsPrices
from trainium_core.capacity.other_zones import zone_binding
from trainium_core.costs.estimate import estimate
from trainium_core.engines.ec2.engine import EC2
from trainium_core.naming import CONSTRUCT_IDS
from trainium_core.nodes.aws_control import AwsNodeChanges
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.report import nodes_report
from trainium_core.nodes.terminated_nodes import TerminatedNodes, terminated_nodes
from trainium_core.plan import Plan
from trainium_core.plan.pilot_end import minute_text
from trainium_core.prices.price import CAPACITY_BLOCK
from trainium_core.stacks.aws_events import AwsStackEvents
from trainium_core.stacks.change_sets import ResourceChange
from trainium_runtime.errors import RequestRefusedError, UnavailableError

_INTERRUPTED = f"Interrupted. CloudFormation continues a deployment that has begun, and {BILLED}"
_BOOTSTRAPPING = "Interrupted: the cluster was not deployed. CloudFormation may still deploy the CDK bootstrap."
_BOOTSTRAP_CREATES = (
    "once for each account and region, creates a bucket, a repository, and the CDK's roles deploy, file-publishing, "
    "image-publishing, lookup, and cfn-exec, which has the policy AdministratorAccess; it costs almost nothing"
)

_ROLE = "AWS::IAM::Role"


def cdk_folder(cdk_json: Path | None, *, may_be_missing: bool = False) -> Path:
    """The folder in which the CDK CLI finds the settings. Raises click.UsageError if it would not find them."""
    file = cdk_json or Path("cdk.json")
    if file.name != "cdk.json":
        raise click.UsageError(f"the CDK CLI reads only cdk.json, not {file.name}")
    if not file.exists() and not may_be_missing:
        raise click.UsageError(f"{file} does not exist: run in the folder of the app, or pass --file")
    return file.absolute().parent


def is_interactive() -> bool:
    """Whether the CDK CLI can prompt."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def deploy_stacks(
    plan: Plan,
    engines: Sequence[str],
    *,
    overrides: Sequence[str],
    folder: Path,
    yes: bool,
    replace_nodes: bool = False,
    is_confirmed: bool = False,
    bootstrap: Sequence[str] = (),
) -> ExitCode:
    """Deploy the stacks of engines, and explain a failure.

    Args:
        plan: The plan to deploy.
        engines: Keys of the engines.
        overrides: Settings of -c, as KEY=VALUE.
        folder: Folder of the app's cdk.json.
        yes: Do not prompt.
        replace_nodes: Running nodes may be terminated without confirmation.
        is_confirmed: The deployment was confirmed already.
        bootstrap: Arguments of the CDK CLI that bootstrap the account first.

    Returns:
        OK if deployed, NOT_READY if the CDK CLI failed.

    Raises:
        CliError: Nothing was deployed, for example because the deployment was not confirmed.
        UnavailableError: AWS could not be read.
    """
    program = find_cdk(folder)
    stacks = [plan.stack_names[key] for key in engines]
    account = AwsStackEvents(plan.region)
    before = {stack: account.last_event(stack) for stack in stacks}
    context = [word for override in overrides for word in ("--context", override)]
    for key, stack in zip(engines, stacks, strict=True):
        ask_about_ending_nodes(
            AwsNodeChanges(plan.region),
            stack,
            construct_id=CONSTRUCT_IDS[key],
            program=program,
            context=context,
            folder=folder,
            yes=yes,
            replace=replace_nodes,
        )
    app = named = [*(CONSTRUCT_IDS[key] for key in engines), *context]
    with TemporaryDirectory() as assembly:
        existing, permissions = [name for name, last in before.items() if last], list[str]()
        if not (yes or is_confirmed):
            _synthesize(CdkRun(program, ["synth", *named, "--quiet", "--output", assembly], folder))
            named = [*app, "--app", assembly]  # so that what is confirmed is deployed
            if existing:
                _show_iam_changes(CdkRun(program, ["diff", *named, "--security-only", "--method", "template"], folder))
            permissions += () if existing else _new_roles(Path(assembly))
        if not is_confirmed:
            _show_deployment(plan, engines, existing=existing, bootstrap=bootstrap, roles=permissions)
            if not (yes or click.confirm("\nDeploy it?")):
                raise CliError("Nothing was deployed.", ExitCode.NOT_READY)
        if bootstrap:
            # Without the app, which need not be synthesized for this.
            _bootstrap(CdkRun(program, [*bootstrap, "--app", ""], folder))
        run = CdkRun(program, ["deploy", *named, "--require-approval", "never"], folder)
        with interrupt_message(_INTERRUPTED):
            if run.with_progress() != 0:
                other_zone = CdkRun(program, ["deploy", *app, "--require-approval", "never"], folder)
                attempts = ZoneAttempts(plan, account, folder / "cdk.json", overrides=overrides)
                if not attempts.after(run, other_zone, before):
                    return ExitCode.NOT_READY
    echo("Deployed.")
    _show_state(plan, engines)
    return ExitCode.OK


def _synthesize(run: CdkRun) -> None:
    """Raises CliError if the CDK app fails."""
    if run.with_progress() != 0:
        message = f"\nNothing was deployed: the CDK app could not be synthesized.\n{run.output_tail}"
        raise CliError(message, ExitCode.NOT_READY)


def _new_roles(assembly: Path) -> Sequence[str]:
    """The paths of the IAM roles in the templates of a cloud assembly."""
    documents = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(assembly.glob("*.template.json"))]
    resources = [part for document in documents for part in document.get("Resources", {}).items()]
    paths = [body.get("Metadata", {}).get("aws:cdk:path", name) for name, body in resources if body["Type"] == _ROLE]
    return [path.partition("/")[2].removesuffix("/Resource") or path for path in paths]


def _show_iam_changes(run: CdkRun) -> None:
    """Show new or wider permissions as reported by the CDK CLI. Raises CliError if the CDK CLI fails."""
    if run.in_terminal() != 0:
        raise CliError("Nothing was deployed: the CDK CLI could not show the IAM changes.", ExitCode.NOT_READY)


def _show_state(plan: Plan, engines: Sequence[str]) -> None:
    """Show the state of the nodes of EC2 and the end of the pilot."""
    if EC2.key not in engines:
        return
    stack = plan.stack_names[EC2.key]
    try:
        with waiting(f"Asking AWS for the nodes of {stack} ..."):
            deployed = AwsNodes(plan.region).nodes(stack)
    except UnavailableError as error:
        nodes = f"unknown: {error}"
    else:
        replacements = plan.node.replacements if plan.node.recovery else 0
        nodes = nodes_report(deployed, replacements=replacements).verdict.reason if deployed else "none"
        if deployed and not deployed.instances and plan.reservation_id:
            nodes = _start_text(plan.reservation_id, AwsCapacity(plan.region)) or nodes
    console().print(pairs([("Nodes", nodes), ("End", pilot_end_text(plan))], label_width=5))


def _start_text(reservation_id: str, capacity: AwsCapacity) -> str:
    """When nodes launch in a reservation that has yet to begin; empty if it has begun."""
    try:
        reservation = capacity.reservation(reservation_id)
    except UnavailableError as error:
        return f"none yet; unknown when {reservation_id} begins: {error}"
    if reservation is None or reservation.start is None or reservation.start <= datetime.now(UTC):
        return ""
    return f"none yet: they launch when {reservation_id} begins, at {minute_text(reservation.start)}"


def _bootstrap(run: CdkRun) -> None:
    """Raises CliError if the CDK CLI fails."""
    with interrupt_message(_BOOTSTRAPPING):
        if run.with_progress() != 0:
            message = f"\nNothing was deployed: `cdk bootstrap` failed.\n{run.output_tail}"
            raise CliError(message, ExitCode.NOT_READY)


def _show_deployment(
    plan: Plan, engines: Sequence[str], *, existing: Sequence[str], bootstrap: Sequence[str], roles: Sequence[str]
) -> None:
    """Show the stacks, their roles, cost and end.

    Args:
        plan: The plan.
        engines: Keys of the engines.
        existing: The stacks that will be updated.
        bootstrap: Arguments of the CDK CLI that bootstrap the account first.
        roles: The IAM roles of new stacks.
    """
    with waiting("Asking AWS for prices ..."):
        hour = estimate(plan, aws=AwsPrices(plan.region)).running_hour
    rows = [
        *([("Bootstrap", f"`cdk {' '.join(bootstrap)}` {_BOOTSTRAP_CREATES}")] if bootstrap else []),
        *(
            ("Stack", f"{name}: {'updated' if name in existing else 'new'}")
            for name in (plan.stack_names[key] for key in engines)
        ),
        *(
            [("IAM", f"new roles: {', '.join(roles)}; `cdk diff --security-only` shows their policies")]
            if roles
            else []
        ),
        ("Nodes", f"{plan.nodes} x {plan.instance_type}, {plan.capacity}, in {plan.region}"),
        *([] if existing or zone_binding(plan) else [("Zone", f"{plan.zone_id}; without capacity there, another one")]),
        ("Price", f"{hour} per hour while the nodes run{_paid_before(plan)}"),
        ("End", pilot_end_text(plan)),
        *([("Support", f"{plan.framework.support}.")] if plan.framework and plan.framework.support else []),
        *([("When idle", when_idle_text(plan))] if plan.pilot.idle_minutes else []),
    ]
    console().print()
    console().print(pairs(rows))


def _paid_before(plan: Plan) -> str:
    return "; the Capacity Block is prepaid" if plan.capacity == CAPACITY_BLOCK else ""


_CHANGE_SET = "trn-deploy-preview"
_KINDS_NAMED = 4
_TEMPLATE_CHANGES = (
    "The launch template changes, for example because of a tag, a check, trn:verification, or a newer image or node "
    "program. Nodes that stay, and those that replace failed ones, keep the previous version: raise "
    "trn:node_generation to use the new one."
)


def ask_about_ending_nodes(
    account: AwsNodeChanges,
    stack: str,
    *,
    construct_id: str,
    program: str,
    context: Sequence[str],
    folder: Path,
    yes: bool,
    replace: bool,
) -> None:
    """Show the changes and how many running nodes would be terminated, and ask for confirmation if any would.

    Creates a change set for this, and deletes it. Does nothing if no node is running.

    Args:
        account: Reads the nodes and the change set, and deletes the change set.
        stack: Name of the stack.
        construct_id: ID of the stack in the CDK CLI.
        program: Path of the CDK CLI.
        context: Arguments of the CDK CLI with settings.
        folder: Folder of the app's cdk.json.
        yes: Do not prompt: without `replace`, no running node may be terminated.
        replace: Running nodes may be terminated without confirmation.

    Raises:
        CliError: The deployment must not proceed.
    """
    try:
        running = account.running_nodes(stack)
        if not running:
            return
        # The CDK CLI deletes an empty change set.
        prepare = ["deploy", construct_id, *context, "--method", "prepare-change-set", "--change-set-name", _CHANGE_SET]
        run = CdkRun(program, [*prepare, "--require-approval", "never"], folder)
        if run.with_progress() != 0:
            message = f"\nNothing was deployed: the change set could not be created.\n{run.output_tail}"
            raise CliError(message, ExitCode.NOT_READY)
        changes = account.changes(stack, _CHANGE_SET)
        ending = terminated_nodes(changes, running=running)
        account.delete_change_set(stack, _CHANGE_SET)
    except UnavailableError as error:
        message = f"Could not determine how many running nodes would be terminated: {error}"
        raise CliError(message, ExitCode.UNKNOWN) from error
    except RequestRefusedError as error:
        raise CliError(f"Nothing was deployed: {error}", ExitCode.NOT_READY) from error
    say(f"{stack}: {_in_words(changes)}.")
    if ending.refused:
        raise CliError(f"Nothing was deployed: {ending.refused}.", ExitCode.NOT_READY)
    _confirm_ending(ending, running, yes=yes, replace=replace)


def _in_words(changes: Sequence[ResourceChange]) -> str:
    """The number of created, changed and deleted resources, with their types."""
    parts: list[str] = []
    for action, verb in (("Add", "created"), ("Modify", "changed"), ("Remove", "deleted")):
        kinds = sorted(
            {change.kind.partition("::")[2].replace("::", " ") for change in changes if change.action == action}
        )
        if kinds:
            number = sum(change.action == action for change in changes)
            named = ", ".join(kinds[:_KINDS_NAMED] + ["and others"] * (len(kinds) > _KINDS_NAMED))
            parts.append(f"{number} resource{'s are' if number > 1 else ' is'} {verb} ({named})")
    return "; ".join(parts) or "no resource changes"


def _confirm_ending(ending: TerminatedNodes, running: int, *, yes: bool, replace: bool) -> None:
    if ending.template_changes:
        say(_TEMPLATE_CHANGES)
    if not ending.count:
        say(f"This deployment does not terminate running nodes. Running: {running}.")
        return
    message = f"{ending.count} of {running} running nodes would be terminated and lose the data on their disks: "
    echo(f"{message}{'; '.join(ending.reasons)}.", err=True)
    if not replace and (yes or not click.confirm("Terminate them?")):
        message = "Nothing was deployed. To deploy anyway: `trn deploy --replace-nodes`."
        raise CliError(message, ExitCode.NOT_READY)
