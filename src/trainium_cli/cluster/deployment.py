"""Deploying the stacks of a plan with the CDK CLI, and telling why when it fails: `trn deploy` and `trn extend`."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from trainium_cli.cdk_program import CdkRun, find_cdk
from trainium_cli.cluster.ending_nodes import ask_about_ending_nodes
from trainium_cli.exit_codes import ExitCode
from trainium_cli.interruption import going_on
from trainium_cli.plan.plan_report import pilot_end_text, when_idle_text
from trainium_cli.terminal import console, pairs
from trainium_cli.waiting import waiting
from trainium_core.costs.estimate import estimate
from trainium_core.engines.registry import ENGINES
from trainium_core.naming import CONSTRUCT_IDS
from trainium_core.nodes.aws_groups import AwsNodeChanges
from trainium_core.plan import Plan
from trainium_core.prices.aws_prices import AwsPrices
from trainium_core.prices.price import CAPACITY_BLOCK
from trainium_core.stacks.aws_events import AwsStackEvents
from trainium_core.stacks.deployment_failure import deployment_failure
from trainium_core.stacks.events import stack_status
from trainium_runtime.errors import UnavailableError

_BILLED = (
    "what it makes is billed: `trn status` shows how far it is, `trn deploy` then goes on from there, `trn destroy` "
    "removes it."
)
_INTERRUPTED = f"Interrupted. What CloudFormation has begun it ends by itself, and {_BILLED}"

_ONLY_PREPARED = "REVIEW_IN_PROGRESS"
"""Of a new stack for which there is a change set that nobody has executed: nothing goes on."""


def cdk_folder(cdk_json: Path | None) -> Path:
    """The folder in which the CDK CLI finds the settings; ends the command if it would not find them there."""
    file = cdk_json or Path("cdk.json")
    if file.name != "cdk.json":
        raise click.UsageError(f"the CDK CLI reads no other file than cdk.json, and not {file.name}")
    if not file.exists():
        raise click.UsageError(f"there is no {file}: run in the folder of the app, or give --file")
    return file.absolute().parent


def is_interactive() -> bool:
    """Whether the CDK CLI can ask somebody."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def deploy_stacks(
    plan: Plan,
    engines: Sequence[str],
    *,
    overrides: Sequence[str],
    folder: Path,
    yes: bool,
    replace_nodes: bool = False,
    consented: bool = False,
    show_iam: bool = False,
) -> ExitCode:
    """Deploy the stacks of engines; on failure explain why.

    yes: nobody is asked anything. replace_nodes: running nodes may end. consented: somebody was asked already.
    show_iam: the CDK CLI shows what changes of IAM, and asks.
    """
    program = find_cdk(folder)
    stacks = [plan.stack_names[key] for key in engines]
    account = AwsStackEvents(plan.region)
    before = _last_events(account, stacks)
    context = [word for override in overrides for word in ("--context", override)]
    for key, stack in zip(engines, stacks, strict=True):
        code = ask_about_ending_nodes(
            AwsNodeChanges(plan.region),
            stack,
            construct_id=CONSTRUCT_IDS[key],
            program=program,
            context=context,
            folder=folder,
            yes=yes,
            replace=replace_nodes,
        )
        if code is not None:
            return code
    if not (yes or consented) and not _consents(plan, engines, there=[name for name, last in before.items() if last]):
        click.echo("Nothing was deployed.", err=True)
        return ExitCode.NOT_READY
    asks_itself = show_iam and not yes
    arguments = [
        "deploy",
        *(CONSTRUCT_IDS[key] for key in engines),
        *context,
        *(() if asks_itself else ("--require-approval", "never")),
    ]
    run = CdkRun(program, arguments, folder)
    try:
        with going_on(_INTERRUPTED):
            code = run.in_terminal() if asks_itself else run.in_few_lines()
            if code != 0:
                _explain_failures(account, stacks, before, run)
    except KeyboardInterrupt:
        click.echo(f"\n{_INTERRUPTED}", err=True)
        return ExitCode.INTERRUPTED
    if code == 0:
        click.echo("\n".join(["Deployed.", *run.outputs]))
        return ExitCode.OK
    return ExitCode.NOT_READY


def _consents(plan: Plan, engines: Sequence[str], *, there: Sequence[str]) -> bool:
    """Show what is deployed, what it costs and when it ends, on one screen, and ask.

    there: names of the stacks that are updated.
    """
    with waiting("Asking AWS for prices ..."):
        hour = estimate(plan, aws=AwsPrices(plan.region)).running_hour
    apart = [ENGINES[key].construct_id for key in engines if not ENGINES[key].ec2_shows_nodes]
    rows = [
        *(
            ("Stack", f"{name}: {'updated' if name in there else 'new'}")
            for name in (plan.stack_names[key] for key in engines)
        ),
        ("Nodes", f"{plan.nodes} x {plan.instance_type}, {plan.capacity}, in {plan.region}"),
        ("Price", f"{hour} per hour from when the nodes run{_paid_before(plan)}"),
        *([("", f"without what {', '.join(apart)} costs, by prices of its service")] if apart else []),
        ("End", pilot_end_text(plan)),
        *([("When idle", when_idle_text(plan))] if plan.pilot.idle_minutes else []),
        ("IAM", "roles and policies of the stacks are made or changed; --show-iam prints them first"),
    ]
    console().print()
    console().print(pairs(rows, label_width=max(len(label) for label, _ in rows)))
    return click.confirm("\nDeploy it?")


def _paid_before(plan: Plan) -> str:
    return "; the Capacity Block is paid already" if plan.capacity == CAPACITY_BLOCK else ""


def _last_events(account: AwsStackEvents, stacks: Sequence[str]) -> Mapping[str, str | None]:
    try:
        return {stack: account.last_event(stack) for stack in stacks}
    except UnavailableError as error:
        click.echo(f"Could not tell: {error}", err=True)
        raise click.exceptions.Exit(ExitCode.UNKNOWN) from error


def _explain_failures(
    account: AwsStackEvents, stacks: Sequence[str], before: Mapping[str, str | None], run: CdkRun
) -> None:
    explained = False
    for stack in stacks:
        try:
            events = account.stack_events(stack, after=before[stack])
        except UnavailableError as error:
            click.echo(f"\nWhy {stack} failed could not be asked: {error}", err=True)
            continue
        failure, status = deployment_failure(events), stack_status(events)
        if failure is None and status.endswith("_IN_PROGRESS") and status != _ONLY_PREPARED:
            explained = True
            click.echo(f"\nThe CDK CLI has ended; {stack} goes on by itself, in {status}, and {_BILLED}", err=True)
        elif failure is None and status.endswith("_COMPLETE"):
            click.echo(f"\n{stack} is in {status}.", err=True)
        if failure is not None:
            explained = True
            reasons = "\n".join(f"  {reason}" for reason in failure.reasons)
            click.echo(f"\n{stack} was not deployed:\n{reasons}\n", err=True)
            click.echo(f"State: {failure.state}.\nNext:  {failure.advice}.", err=True)
    if not explained:
        click.echo(f"\nThe CDK CLI ended without having deployed everything.\n{run.output_tail}".rstrip(), err=True)
