"""`trn destroy`: deletes a cluster, except what is retained."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Any

import click

from trainium_cli.cluster.node_end import grace_option, has_job, in_words, running_job_sentence
from trainium_cli.cluster_choice import cluster_stack_names, others_sentence, read_tagged_plan, unreadable_stacks
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.interruption import finish_before_exit, interrupt_message
from trainium_cli.invocation import Invocation, cluster_options, pass_invocation, plan_options
from trainium_cli.progress_reporter import ProgressReporter
from trainium_cli.terminal import console, print_json, say, table
from trainium_cli.waiting import waiting
from trainium_core.aws.prices import AwsPrices
from trainium_core.costs.estimate import dollars
from trainium_core.plan import Plan
from trainium_core.plan.context import settings_given
from trainium_core.stacks.containers import containers
from trainium_core.stacks.description import DescribedResource
from trainium_core.teardown.aws_account import AwsTeardown
from trainium_core.teardown.inventory import Inventory, RetainedResource, inventory
from trainium_core.teardown.leftovers import StoredBytes
from trainium_core.teardown.run import StepOutcome, outliving_nodes, take_down, verdict
from trainium_core.teardown.run import others_sentence as foreign_resources
from trainium_core.teardown.scope import Scope, find_scope
from trainium_core.teardown.steps import StepProgress
from trainium_runtime.errors import UnavailableError

_INTERRUPTED = (
    "Interrupted. Resources that AWS is deleting will be deleted; the rest still exists, and is billed. "
    "Run `trn destroy` again: it continues."
)
_EXIT_CODES = {"gone": ExitCode.OK, "left": ExitCode.NOT_READY, "unknown": ExitCode.UNKNOWN}


@click.command()
@grace_option
@click.option("--whole-stacks", is_flag=True, help="Also delete stacks that contain other resources, completely.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation, for scripts.")
@cluster_options
@plan_options
@interrupt_message("Interrupted: nothing was destroyed.")
@pass_invocation
def destroy(invocation: Invocation, grace: timedelta, whole_stacks: bool, yes: bool) -> ExitCode:
    """Destroy the cluster and its resources outside of stacks.

    Shows what will be deleted, what stays and what that costs, and asks for confirmation. Then stops jobs of SageMaker,
    Slurm and, with your kubectl, EKS, which get two minutes to save their state; notifies and terminates the nodes;
    empties buckets and deletes the stacks; and finally deletes log groups, SSM parameters, snapshots and network
    interfaces with the cluster's tag.
    Resources of other clusters are not touched, nor are resources without the tag outside the stacks, except log
    groups that are named after a resource of the stacks. A stack of your app with other resources stays, without its
    nodes, unless you pass --whole-stacks.

    You can interrupt the command at any time and run it again to continue.

    A cluster that another project deployed (trn:project_id) is not destroyed, unless --cluster names it.

    Exit code 0: nothing is left except retained resources. 1: something is left, only stacks of others were
    found, another project deployed the cluster, or not confirmed. 3: unknown.
    """
    invocation.require_yes(yes)
    if yes and not invocation.cluster and not settings_given(invocation.cdk_json, invocation.overrides):
        raise click.UsageError("--yes needs a cluster: pass --cluster NAME, or run in the folder of its cdk.json")
    plan = read_tagged_plan(invocation)
    account = AwsTeardown(plan.region, clients=invocation.clients)
    with waiting(f"Asking AWS for everything of {plan.cluster_name} in {plan.region} ..."):
        stacks = cluster_stack_names(invocation, plan)
        scope = find_scope(account, plan.cluster_name, located=stacks, whole_stacks=whole_stacks)
        if not invocation.cluster:
            _refuse_another_project(invocation, plan, scope)
        found = inventory(account, scope, plan, prices=AwsPrices(plan.region, clients=invocation.clients))
    if not invocation.as_json:
        show_inventory(found, scope, plan.region)
        sentence = running_job_sentence(invocation, plan, scope.node_stack) if scope.node_stack else None
        if sentence:
            say(f"\nJob: {sentence}.")
        if grace and any(item.what == "nodes" for item in found.to_delete):
            say(f"\nThe nodes are notified {in_words(grace)} before they end; --grace changes that.")
    if not (found.to_delete or found.unknown or scope.shared):
        unread = unreadable_stacks(invocation, plan)
        if unread:
            raise UnavailableError("; ".join(unread))
        left = outliving_nodes(account, scope, time.sleep)
        return _ended(invocation, found, left, plan) if left else _nothing(invocation, found, scope, plan)
    _refuse_full_containers(found)
    # A protected stack needs no confirmation: nothing is deleted.
    if not yes and not scope.protected and not click.confirm("\nDestroy this?"):
        say("Nothing was destroyed.")
        return ExitCode.NOT_READY
    with interrupt_message(_INTERRUPTED):
        outcomes = _take_down(account, scope, grace, partial(has_job, invocation, plan, scope.node_stack or ""))
    return _ended(invocation, found, outcomes, plan)


def _ended(invocation: Invocation, found: Inventory, outcomes: Sequence[StepOutcome], plan: Plan) -> ExitCode:
    if invocation.as_json:
        print_json({"region": plan.region, **inventory_as_json(found), **outcomes_as_json(outcomes)})
    else:
        show_end(outcomes, plan.cluster_name, plan.region, kept=bool(found.kept))
    return _EXIT_CODES[verdict(outcomes)]


def _refuse_another_project(invocation: Invocation, plan: Plan, scope: Scope) -> None:
    """Raises CliError if another project deployed the cluster than that of the settings, which may have mistakes."""
    settings = settings_given(invocation.cdk_json, invocation.overrides)
    own = settings.get("project_id") if invocation.has_plan else plan.project_id
    stack = scope.other_project(own)
    if stack is not None:
        message = f"{stack.name} belongs to the project {stack.project}, not to that of this plan ({own or 'no ID'})."
        fix = f"To destroy it, run: trn destroy --cluster {plan.cluster_name}"
        raise CliError(f"Nothing was destroyed: {message} {fix}", ExitCode.NOT_READY)


def _refuse_full_containers(found: Inventory) -> None:
    if found.not_empty:
        listed = "\n".join(f"  {_how_to_empty(resource)}" for resource in found.not_empty)
        nodes = any(item.what == "nodes" for item in found.to_delete)
        running = "\nThe nodes keep running: `trn sleep` terminates them." if nodes else ""
        message = (
            "Nothing was destroyed: CloudFormation deletes these resources of your app only if they are empty, and "
            "`trn destroy` does not empty them. Empty them first (of versioned buckets, delete every version, for "
            "example with Empty in the S3 console), or retain them in the app and deploy it:"
        )
        raise CliError(f"{message}\n{listed}{running}", ExitCode.NOT_READY)


def _how_to_empty(resource: DescribedResource) -> str:
    container = containers()[resource.kind]
    return container.command_for(resource.resource_id) or f"{container.name} {resource.resource_id}"


def _take_down(
    account: AwsTeardown, scope: Scope, grace: timedelta, job: Callable[[], bool | None]
) -> tuple[StepOutcome, ...]:
    with ProgressReporter() as reporter:

        def on_progress(step: str, progress: StepProgress) -> None:
            reporter.report(step, progress.message, ended=progress.state in ("done", "stuck"))

        return take_down(
            account,
            scope,
            on_progress=on_progress,
            pause=time.sleep,
            has_job=job,
            grace=grace,
            when_interrupted=finish_before_exit,
        )


def _nothing(invocation: Invocation, found: Inventory, scope: Scope, plan: Plan) -> ExitCode:
    if invocation.as_json:
        print_json({"region": plan.region, **inventory_as_json(found), "verdict": "gone", "steps": []})
    else:
        nothing = f"There are no resources of {scope.cluster} to destroy in {plan.region}."
        say(f"\n{nothing}{others_sentence(invocation, plan)}")
    return ExitCode.NOT_READY if scope.foreign else ExitCode.OK


_KIND_NAMES = {
    "AWS::S3::Bucket": "S3 bucket",
    "AWS::FSx::FileSystem": "FSx file system",
    "AWS::EFS::FileSystem": "EFS file system",
}
_GIB = 1024**3


def show_inventory(found: Inventory, scope: Scope, region: str) -> None:
    """Show what will be deleted, what stays, what is unknown, and what belongs to others."""
    screen = console()
    if found.to_delete:
        screen.print(f"These resources of {scope.cluster} in {region} will be deleted:\n", style="bold")
        rows = [(item.what, item.name, item.detail) for item in found.to_delete]
        screen.print(table(["What", "Name", ""], rows, wrapping=["Name", ""]))
    show_kept(found.kept, region)
    for reason in found.unknown:
        screen.print(f"\nunknown: {reason}", style="magenta")
    nodes_end = " Its nodes are terminated." if any(item.what == "nodes" for item in found.to_delete) else ""
    for stack in scope.shared:
        screen.print(f"\nThe stack {stack.name} stays: {foreign_resources(stack)}.{nodes_end}", style="yellow")
        screen.print(
            "Pass --whole-stacks to delete it completely, or remove the cluster from its app and deploy the app."
        )
    for stack in scope.foreign:
        screen.print(f"\n{foreign_sentence(stack.name, stack.cluster, scope.cluster)}", style="yellow")


def show_kept(kept: Sequence[RetainedResource], region: str) -> None:
    if kept:
        screen = console()
        screen.print(f"\nThese resources will be retained in {region}:\n", style="bold")
        rows = [
            (_kind(resource), resource.resource_id, _amount(resource.stored), _month(resource)) for resource in kept
        ]
        screen.print(table(["What", "Name", "Holds", "Per month"], rows, right=["Holds", "Per month"]))


def show_end(outcomes: Sequence[StepOutcome], cluster: str, region: str, *, kept: bool) -> None:
    """Show the steps that failed and the verdict, which mentions retained resources if there are any."""
    screen = console()
    for outcome in outcomes:
        if outcome.counts and outcome.state != "done":
            screen.print(f"\n{outcome.step}: {outcome.state}: {outcome.message}", style="red")
    except_retained = " except retained ones" if kept else ""
    sentences = {
        "gone": f"No resources of {cluster} are left in {region}{except_retained}. `trn audit` verifies this.",
        "left": f"Resources of {cluster} are left in {region}: follow the instructions above, then run `trn destroy` "
        "again.",
        "unknown": f"Not all of {cluster} in {region} could be read, see above. Run `trn destroy` again: it continues.",
    }
    screen.print(f"\n{sentences[verdict(outcomes)]}", style="bold")


def foreign_sentence(name: str, owner: str | None, cluster: str) -> str:
    ownership = f"belongs to the cluster {owner}, not to {cluster}" if owner else "has no tag trn:cluster"
    other = f" To destroy that cluster: `trn destroy --cluster {owner}`." if owner else ""
    return f"The stack {name} {ownership}: it is not touched.{other}"


def inventory_as_json(found: Inventory) -> dict[str, Any]:
    return {
        "to_delete": [asdict(item) for item in found.to_delete],
        "kept": [kept_as_json(resource) for resource in found.kept],
        "unknown": list(found.unknown),
    }


def kept_as_json(kept: RetainedResource) -> dict[str, Any]:
    return asdict(kept) | {"month_usd": None if kept.month_usd is None else float(kept.month_usd)}


def outcomes_as_json(outcomes: Sequence[StepOutcome]) -> dict[str, Any]:
    return {"verdict": verdict(outcomes), "steps": [_outcome_as_json(outcome) for outcome in outcomes]}


def _outcome_as_json(outcome: StepOutcome) -> dict[str, Any]:
    return {"step": outcome.step, "state": outcome.state, "message": outcome.message, "counts": outcome.counts}


def _kind(kept: RetainedResource) -> str:
    return _KIND_NAMES.get(kept.kind, kept.kind)


def _amount(stored: StoredBytes | None) -> str:
    if stored is None:
        return "unknown"
    least = "at least " if stored.at_least else ""
    return f"{least}{stored.count / _GIB:.2f} GiB" if stored.count >= _GIB / 100 else f"{least}{stored.count:,} bytes"


def _month(kept: RetainedResource) -> str:
    if kept.month_usd is None:
        return "unknown"
    least = "at least " if kept.stored and kept.stored.at_least else ""
    return f"{least}{dollars(kept.month_usd)}"
