"""`trn destroy`: everything of a cluster goes, in the order that works, except what is retained."""

import time
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import click

from trainium_cli.cluster.destroy_report import inventory_as_json, outcomes_as_json, show_end, show_inventory
from trainium_cli.cluster.grace import grace_option, in_words
from trainium_cli.cluster.running_job import running_job_sentence
from trainium_cli.cluster_selection import (
    cluster_options,
    not_located,
    others_sentence,
    read_cluster_plan,
    stacks_of_cluster,
)
from trainium_cli.exit_codes import ExitCode
from trainium_cli.interruption import finishing, going_on
from trainium_cli.plan_options import IRRELEVANT_LATER, plan_options
from trainium_cli.progress_reporter import ProgressReporter
from trainium_cli.terminal import print_json, say
from trainium_cli.waiting import waiting
from trainium_core.plan import Plan
from trainium_core.prices.aws_prices import AwsPrices
from trainium_core.teardown.aws_account import AwsTeardown
from trainium_core.teardown.inventory import Inventory, inventory
from trainium_core.teardown.run import Outcome, take_down, verdict
from trainium_core.teardown.scope import Scope, find_scope
from trainium_core.teardown.step import Progress
from trainium_runtime.errors import UnavailableError

_INTERRUPTED = (
    "Interrupted. What is deleted is gone, and what AWS has begun to delete goes; the rest is still there, and billed. "
    "Run `trn destroy` again: it goes on."
)
_EXIT_CODES = {"gone": ExitCode.OK, "left": ExitCode.NOT_READY, "could not tell": ExitCode.UNKNOWN}


@click.command()
@plan_options
@cluster_options
@grace_option
@click.option(
    "--whole-stacks", is_flag=True, help="Delete also stacks that have other things than the cluster, with all of it."
)
@click.option("--yes", is_flag=True, help="Destroy without asking first, for scripts.")
@going_on("Interrupted: nothing was destroyed.")
def destroy(
    overrides: tuple[str, ...], cdk_json: Path | None, as_json: bool, grace: timedelta, whole_stacks: bool, yes: bool
) -> None:
    """Destroy the cluster, and what is left of it outside its stacks.

    Shows first what goes and what stays, and what that costs, and asks. Then training jobs are stopped, the nodes are
    told and end, buckets are emptied, and the stacks are deleted; last come log groups, SSM parameters, snapshots and
    network interfaces with the cluster's tag. Nothing that belongs to another cluster, or to nobody, is touched. A
    stack of an app of one's own that has other things too stays, without its nodes, unless --whole-stacks is given.

    Can be interrupted at any time: run again, it goes on.

    Exit code 0: nothing is left but what is retained. 1: something is left. 3: could not tell.
    """
    if as_json and not yes:
        raise click.UsageError("with --json nobody is asked: give --yes as well")
    plan = read_cluster_plan(cdk_json, overrides, as_json=as_json, ignoring=IRRELEVANT_LATER)
    account = AwsTeardown(plan.region)
    try:
        with waiting(f"Asking AWS for everything of {plan.cluster_name} in {plan.region} ..."):
            stacks = stacks_of_cluster(plan)
            scope = find_scope(account, plan.cluster_name, located=stacks, whole_stacks=whole_stacks)
            found = inventory(account, scope, plan, prices=AwsPrices(plan.region))
    except UnavailableError as error:
        _end(ExitCode.UNKNOWN, f"Could not tell: {error}", as_json=as_json)
    if not as_json:
        show_inventory(found, scope, plan.region)
        for sentence in (running_job_sentence(plan, one) for one in stacks):
            if sentence:
                say(f"\nJob: {sentence}.")
        if grace and any(one.what == "nodes" for one in found.going):
            say(f"\nThe nodes are notified {in_words(grace)} before they end; --grace changes that.")
    if not (found.going or found.unknown or scope.shared):
        unread = not_located(plan)
        if unread:
            _end(ExitCode.UNKNOWN, f"Could not tell: {'; '.join(unread)}", as_json=as_json)
        _nothing(found, scope, plan, as_json=as_json)
    # What is protected is not asked about: nothing of it goes.
    if not yes and not scope.protected and not click.confirm("\nDestroy this?"):
        say("Nothing was destroyed.")
        raise click.exceptions.Exit(ExitCode.NOT_READY)
    try:
        with going_on(_INTERRUPTED):
            outcomes = _take_down(account, scope, grace)
    except KeyboardInterrupt:
        _end(ExitCode.INTERRUPTED, f"\n{_INTERRUPTED}", as_json=as_json)
    if as_json:
        print_json({"region": plan.region, **inventory_as_json(found), **outcomes_as_json(outcomes)})
    else:
        show_end(outcomes, plan.cluster_name, plan.region, kept=bool(found.kept))
    raise click.exceptions.Exit(_EXIT_CODES[verdict(outcomes)])


def _take_down(account: AwsTeardown, scope: Scope, grace: timedelta) -> tuple[Outcome, ...]:
    with ProgressReporter() as reporter:

        def on_progress(step: str, progress: Progress) -> None:
            reporter.report(step, progress.message, ended=progress.state in ("done", "stuck"))

        return take_down(
            account, scope, on_progress=on_progress, pause=time.sleep, grace=grace, when_interrupted=finishing
        )


def _nothing(found: Inventory, scope: Scope, plan: Plan, *, as_json: bool) -> NoReturn:
    region = plan.region
    code = ExitCode.NOT_READY if scope.foreign else ExitCode.OK
    if as_json:
        print_json({"region": region, **inventory_as_json(found), "verdict": "gone", "steps": []})
    else:
        say(f"\nNothing of {scope.cluster} is in {region} to destroy.{others_sentence(plan)}")
    raise click.exceptions.Exit(code)


def _end(code: ExitCode, message: str, *, as_json: bool) -> NoReturn:
    if as_json:
        print_json({"error": message.strip()})
    click.echo(message, err=True)
    raise click.exceptions.Exit(code)
