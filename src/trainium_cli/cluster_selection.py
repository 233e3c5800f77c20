"""Which cluster a command is about: that of cdk.json, the one that is named, or the only one that is there."""

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import boto3.session
import click
from botocore.exceptions import BotoCoreError

from trainium_cli.completion_values import complete_region
from trainium_cli.exit_codes import ExitCode
from trainium_cli.mistakes import unknown_name
from trainium_cli.plan_options import refuse
from trainium_cli.terminal import print_json
from trainium_cli.waiting import waiting
from trainium_core.clusters.aws_account import AwsClustersAccount
from trainium_core.clusters.cluster import ClusterStack, ClusterStacks
from trainium_core.clusters.locating import LocatedCluster, deployed_plan, located
from trainium_core.engines.ec2.engine import EC2
from trainium_core.plan import Plan
from trainium_core.plan.context import plan_from_file, settings_given
from trainium_core.problems import SETTING_PREFIX, PlanError
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import UnavailableError

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = "trainium_cli.cluster"
_FOUND = "trainium_cli.cluster.found"
_CLIENTS = "trainium_cli.clients"
_SELECTING = ("cluster_name", "region")
"""Settings that name a cluster, and say nothing of what it is."""


def command_clients() -> Clients:
    """Shared by whatever a run of a command asks: making a client can take longer than what it is asked."""
    ctx = click.get_current_context(silent=True)
    return ctx.meta.setdefault(_CLIENTS, Clients()) if ctx else Clients()


def cluster_options(command: Command) -> Command:
    """--cluster and --region: a cluster that cdk.json does not name."""
    command = click.option(
        "--region",
        metavar="REGION",
        shell_complete=complete_region,
        expose_value=False,
        callback=_remember,
        help="Where the cluster is. Default: the region of cdk.json, else that of the AWS configuration.",
    )(command)
    return click.option(
        "--cluster",
        metavar="NAME",
        expose_value=False,
        callback=_remember,
        help="The cluster, whichever app made it. Default: the one of cdk.json, else the only one of the region.",
    )(command)


def stack_option(command: Command) -> Command:
    """--stack, and what else names a cluster."""
    return click.option(
        "--stack",
        metavar="NAME",
        callback=_named,
        help="Stack of the nodes in CloudFormation. Default: the cluster's, see `trn list`.",
    )(cluster_options(command))


def stacks_option(command: Command) -> Command:
    """--stack, repeatable, and what else names a cluster."""
    return click.option(
        "--stack",
        "stacks",
        multiple=True,
        metavar="NAME",
        callback=_all_named,
        help="Stack of the cluster in CloudFormation, deleted or not. Repeatable. Default: those of `trn list`.",
    )(cluster_options(command))


def _named(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """As it was given. An empty name, such as of a variable that is not set, must not stand for the default."""
    if value == "":
        raise click.BadParameter("is empty: name one, or leave the option out", ctx, param)
    return value


def _all_named(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        _named(ctx, param, value)
    return values


def _remember(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if _named(ctx, param, value) is not None:
        ctx.meta.setdefault(_OPTIONS, {})[param.name] = value
    return value


def _given() -> dict[str, str]:
    ctx = click.get_current_context(silent=True)
    return ctx.meta.get(_OPTIONS, {}) if ctx else {}


def read_cluster_plan(
    cdk_json: Path | None,
    overrides: tuple[str, ...],
    *,
    as_json: bool,
    ignoring: Collection[str] = (),
    may_be_gone: bool = False,
) -> Plan:
    """The plan of the cluster that the options, or cdk.json, are about; ends the command where that is not clear.

    Without settings of a plan it is what the deployed stacks tell of it. ignoring: as for read_plan. may_be_gone: a
    cluster that is named may have no stacks any more.
    """
    name, region = _given().get("cluster"), _given().get("region")
    try:
        settings = settings_given(cdk_json, overrides)
        if settings.keys() - set(_SELECTING):
            plan = plan_from_file(cdk_json, overrides, ignoring=ignoring)
            if name in (None, plan.cluster_name) and region in (None, plan.region):
                return plan
            settings = {"cluster_name": plan.cluster_name, "region": plan.region}
            name = name or plan.cluster_name
        name = name or settings.get("cluster_name")
        region = region or settings.get("region") or _configured_region(as_json=as_json)
        account = AwsClustersAccount(region, clients=command_clients())
        found = _stacks(region, account)
        cluster = _gone(name, region, found) if may_be_gone else None
        cluster = cluster or _the_one(located(found), found, name, region, as_json=as_json)
        return deployed_plan(account, cluster, region)
    except PlanError as error:
        refuse(error, as_json=as_json)
    except UnavailableError as error:
        _end(ExitCode.UNKNOWN, f"Could not tell: {error}", as_json=as_json)


def settings_of_a_plan(cdk_json: Path | None, overrides: tuple[str, ...]) -> bool:
    """Whether the options or cdk.json hold more than the name of a cluster, or mistakes."""
    try:
        return bool(settings_given(cdk_json, overrides).keys() - set(_SELECTING))
    except PlanError:
        return True


def stack_of_cluster(plan: Plan, given: str | None) -> str:
    """The stack of the nodes in CloudFormation: the one that was given, else the one that is found."""
    if given:
        return given
    found = [stack.name for stack in _of_cluster(plan) if stack.has_nodes]
    usual = plan.stack_names[EC2.key]
    return usual if usual in found or not found else found[0]


def stacks_of_cluster(plan: Plan, given: Collection[str] = ()) -> tuple[str, ...]:
    """The stacks in CloudFormation: those that were given, else those that are found and those it usually has."""
    return tuple(given or dict.fromkeys([*plan.stack_names.values(), *(stack.name for stack in _of_cluster(plan))]))


def not_located(plan: Plan) -> Sequence[str]:
    """What of the region may have something of the cluster, and could not be read."""
    try:
        return _stacks(plan.region, AwsClustersAccount(plan.region, clients=command_clients())).not_read
    except UnavailableError as error:
        return [str(error)]


def other_clusters(plan: Plan) -> Sequence[str]:
    """The names of the other clusters of the region, as far as they can be seen."""
    try:
        found = located(_stacks(plan.region, AwsClustersAccount(plan.region, clients=command_clients())))
    except UnavailableError:
        return ()
    return [cluster.name for cluster in found if cluster.name != plan.cluster_name]


def others_sentence(plan: Plan) -> str:
    """That there are other clusters, and how to name one; empty where there are none."""
    others = other_clusters(plan)
    return f" Other clusters are there, for --cluster: {', '.join(others)}." if others else ""


def configured_region() -> str:
    """That of --region, else of the environment or the profile; ends the command without any."""
    return _given().get("region") or _configured_region(as_json=False)


def completed_region() -> str:
    """The region of a line that is being typed: that of --region, of cdk.json, else configured_region."""
    try:
        in_file = settings_given(None, ()).get("region")
    except PlanError:
        in_file = None
    return _given().get("region") or in_file or configured_region()


def _of_cluster(plan: Plan) -> Sequence[ClusterStack]:
    """Without an answer none: the command itself then asks by the usual names, and tells what it is not allowed."""
    try:
        found = _stacks(plan.region, AwsClustersAccount(plan.region, clients=command_clients()))
    except UnavailableError:
        return ()
    return [stack for stack in found.stacks if stack.cluster == plan.cluster_name]


def _stacks(region: str, account: AwsClustersAccount) -> ClusterStacks:
    """Asked once for each region in a run of a command."""
    ctx = click.get_current_context(silent=True)
    known: dict[str, ClusterStacks] = ctx.meta.setdefault(_FOUND, {}) if ctx else {}
    if region not in known:
        with waiting(f"Looking for clusters in {region} ..."):
            known[region] = account.cluster_stacks()
    return known[region]


def _gone(name: str | None, region: str, found: ClusterStacks) -> LocatedCluster | None:
    """The cluster of a name that no stack has; says so, as the name may be a mistake."""
    names = {stack.cluster for stack in found.stacks}
    if name is None or found.not_read or name in names:
        return None
    others = f"; clusters that have some: {', '.join(sorted(names))}" if names else ""
    message = f"No stack in {region} is of {name}{others}. --stack NAME looks also at what a deleted stack has left."
    click.echo(message, err=True)
    return LocatedCluster(name=name, stacks=())


def _the_one(
    clusters: Sequence[LocatedCluster], found: ClusterStacks, name: str | None, region: str, *, as_json: bool
) -> LocatedCluster:
    """The cluster of that name, or the only one; ends the command otherwise."""
    names = [cluster.name for cluster in clusters]
    chosen = [cluster for cluster in clusters if name in (None, cluster.name)]
    if len(chosen) == 1:
        return chosen[0]
    if name is None and clusters:
        which = f"--cluster says which of the {len(clusters)} clusters in {region}: {', '.join(names)}"
        _end(ExitCode.BAD_INPUT, which, as_json=as_json)
    if found.not_read:
        _end(ExitCode.UNKNOWN, f"Could not tell: {'; '.join(found.not_read)}", as_json=as_json)
    if name is None:
        message = f"There is no cluster in {region}, and no cdk.json here that describes one"
    else:
        message = f"In {region} {unknown_name('cluster', name, names) if names else 'there is no cluster'}"
    return _end(ExitCode.NOT_READY, f"{message}. `trn list --all-regions` looks elsewhere.", as_json=as_json)


def _configured_region(*, as_json: bool) -> str:
    """That of the environment or the profile."""
    try:
        session = boto3.session.Session()
        region = os.environ.get("AWS_REGION") or session.region_name
    except BotoCoreError as error:
        _end(ExitCode.UNKNOWN, f"Could not tell: {error}", as_json=as_json)
    if region is None:
        message = (
            f"No region: give --region, set AWS_REGION, or run in the folder of a cdk.json with {SETTING_PREFIX}region."
        )
        _end(ExitCode.BAD_INPUT, message, as_json=as_json)
    return region


def _end(code: ExitCode, message: str, *, as_json: bool) -> NoReturn:
    if as_json:
        print_json({"error": message})
    click.echo(message, err=True)
    raise click.exceptions.Exit(code)
