"""Selects the cluster of a command: the named one, that of cdk.json, or the only one in the region."""

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import boto3.session
from botocore.exceptions import BotoCoreError

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import SELECTING_SETTINGS, Invocation
from trainium_cli.mistakes import unknown_name
from trainium_cli.terminal import echo
from trainium_cli.waiting import waiting
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.clusters.aws_account import AwsClustersAccount
from trainium_core.clusters.cluster import ClusterNode, ClusterStacks
from trainium_core.engines.ec2.engine import EC2
from trainium_core.engines.registry import ENGINES, ENGINES_WITH_NODES
from trainium_core.plan import Plan
from trainium_core.plan.context import settings_given
from trainium_core.plan.deployed_plan import deployed_plan
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.problems import OVERRIDE, SETTING_PREFIX, PlanError
from trainium_core.stacks.aws_records import Records
from trainium_runtime.errors import UnavailableError


def read_cluster_plan(invocation: Invocation) -> Plan:
    """The plan of the selected cluster.

    If -c and cdk.json have only settings that select a cluster, or the options select another one, or settings have
    mistakes, the plan is that of the record of a stack.

    Raises:
        CliError: No cluster or region is selected, or the cluster has no record.
        PlanError: Mistakes hide the name or the region of the cluster.
        UnavailableError: AWS could not be read.
    """
    given = _selected(invocation)
    if isinstance(given, Plan):
        return given
    name, region = given
    records = _records(invocation, region)
    plan = _recorded_plan(records, name, region)
    if plan is None:
        raise _not_found(name, region, {record.cluster for record in records.readable})
    return plan


def read_tagged_plan(invocation: Invocation, *, may_be_gone: bool = False) -> Plan:
    """As `read_cluster_plan`, but a cluster without a record is also found, by the tags of its stacks and nodes.

    Its plan then has no settings. A note says that the cluster has no record.

    Args:
        invocation: The options.
        may_be_gone: A named cluster may no longer have stacks.
    """
    given = _selected(invocation)
    if isinstance(given, Plan):
        return given
    name, region = given
    plan = _recorded_plan(_records(invocation, region), name, region)
    if plan is not None:
        return plan
    found = _stacks(invocation, region)
    names = sorted({stack.cluster for stack in found.stacks})
    name = names[0] if name is None and len(names) == 1 else name
    if name in names:
        stacks = ", ".join(stack.name for stack in found.stacks if stack.cluster == name)
        echo(f"{name} has no record: its tag was found in {stacks}.", err=True)
    elif found.not_read:
        raise UnavailableError("; ".join(found.not_read))
    elif name is not None and may_be_gone:
        others = f"; clusters with stacks: {', '.join(names)}" if names else ""
        message = f"No stack in {region} belongs to {name}{others}."
        echo(f"{message} --stack NAME also finds leftovers of a deleted stack.", err=True)
    elif name is not None and _nodes(invocation, region, name):
        message = f"No stack in {region} belongs to {name}, but nodes do. To terminate them: "
        echo(f"{message}`trn destroy --cluster {name} --region {region}`.", err=True)
    else:
        raise _not_found(name, region, names)
    # The type is not used without nodes: commands find everything by the cluster's name.
    any_type = next(iter((*builtin_catalog().offered_in(region), *builtin_catalog())))
    return Plan.of(region=region, cluster_name=name, instance_type=any_type)


def cluster_stack_name(invocation: Invocation, plan: Plan, stack: str | None) -> str:
    """The CloudFormation stack of the nodes: the one of --stack, else that of the cluster's record.

    The stack with the usual name is preferred. That name is also returned without a record.

    Raises UnavailableError.
    """
    outside = [key for key, engine in ENGINES.items() if engine.has_outside_nodes]
    usual = next((key for key in (*ENGINES_WITH_NODES, *outside) if key in plan.stacks), EC2.key)
    return stack or _stack_name(invocation, plan, usual, ENGINES_WITH_NODES, outside)


def engine_stack_name(invocation: Invocation, plan: Plan, engine: str, stack: str | None) -> str:
    """The CloudFormation stack of an engine: the one of --stack, else that of the cluster's record of the engine.

    The stack with the usual name is preferred. That name is also returned without a record.

    Raises UnavailableError.
    """
    return stack or _stack_name(invocation, plan, engine, (engine,))


def _stack_name(
    invocation: Invocation, plan: Plan, engine: str, engines: Collection[str], others: Collection[str] = ()
) -> str:
    """The stack with the usual name of `engine`, unless only other stacks of the cluster have records of `engines`.

    Without any such record, stacks with records of `others` are taken.
    """
    records = _records(invocation, plan.region).readable
    own = [record for record in records if record.cluster == plan.cluster_name]
    found = [record.stack for record in own if record.engine in engines]
    found = found or [record.stack for record in own if record.engine in others]
    usual = plan.stack_names[engine]
    return usual if usual in found or not found else found[0]


def cluster_stack_names(invocation: Invocation, plan: Plan, stacks: Collection[str] = ()) -> tuple[str, ...]:
    """The CloudFormation stacks: those of --stack, else the usual names and the stacks with the record or the tag.

    If no such stack is found, the stacks in the tags of the nodes are used instead. They may be deleted.
    """
    if stacks:
        return tuple(stacks)
    try:
        known = _stacks(invocation, plan.region).stacks
    except UnavailableError:
        known = ()  # the requests of the command report missing permissions
    found = [stack.name for stack in known if stack.cluster == plan.cluster_name]
    if not found:
        nodes = _nodes(invocation, plan.region, plan.cluster_name)
        found = [node.stack for node in nodes if node.stack is not None]
    return tuple(dict.fromkeys([*plan.stack_names.values(), *found]))


def cache_urls(invocation: Invocation, plan: Plan) -> Sequence[str]:
    """The distinct compile caches in the cluster's records; empty without a record. Raises UnavailableError."""
    records = _records(invocation, plan.region).readable
    return list(dict.fromkeys(record.cache_url for record in records if record.cluster == plan.cluster_name))


def unreadable_stacks(invocation: Invocation, plan: Plan) -> Sequence[str]:
    """Why stacks of the region, which may belong to the cluster, could not be read."""
    try:
        return _stacks(invocation, plan.region).not_read
    except UnavailableError as error:
        return [str(error)]


def others_sentence(invocation: Invocation, plan: Plan) -> str:
    """A sentence that lists other clusters; empty if there are none, or they cannot be read."""
    try:
        records = _records(invocation, plan.region).readable
    except UnavailableError:
        return ""
    others = sorted({record.cluster for record in records} - {plan.cluster_name})
    return f" Other clusters, for --cluster: {', '.join(others)}." if others else ""


def missing_stack(invocation: Invocation, plan: Plan, stack: str) -> CliError:
    """The error for a stack that does not exist."""
    message = f"Stack {stack} does not exist in {plan.region}: `trn deploy` creates it."
    return CliError(f"{message}{others_sentence(invocation, plan)}", ExitCode.NOT_READY)


def configured_region(invocation: Invocation) -> str:
    """The region of --region, the settings, the environment or the profile. Other settings may have mistakes.

    Raises:
        CliError: No region is set.
        UnavailableError: The profile does not exist.
    """
    if invocation.region:
        return invocation.region
    with suppress(PlanError):
        region = settings_given(invocation.cdk_json, invocation.overrides).get("region")
        if isinstance(region, str):
            return region
    try:
        session: Any = boto3.session.Session()
    except BotoCoreError as error:
        raise UnavailableError(str(error)) from error
    configured: str | None = os.environ.get("AWS_REGION") or session.region_name
    if configured is None:
        message = (
            f"No region: pass --region, set AWS_REGION, or run in the folder of a cdk.json with {SETTING_PREFIX}region."
        )
        raise CliError(message, ExitCode.BAD_INPUT)
    return configured


def _selected(invocation: Invocation) -> Plan | tuple[str | None, str]:
    """The plan of -c and cdk.json, or the name (None for the only one) and the region of the selected cluster."""
    name, region = invocation.cluster, invocation.region
    settings: Mapping[str, Any] = {}
    try:
        settings = settings_given(invocation.cdk_json, invocation.overrides)
        plan = invocation.plan() if settings.keys() - SELECTING_SETTINGS else None
    except PlanError as error:
        return _selected_despite(error, invocation, settings)
    if plan is not None:
        if name in (None, plan.cluster_name) and region in (None, plan.region):
            return plan
        settings = {"cluster_name": plan.cluster_name, "region": plan.region}
        name = name or plan.cluster_name
    name = name or settings.get("cluster_name")
    return name, str(region or configured_region(invocation))


def _selected_despite(error: PlanError, invocation: Invocation, settings: Mapping[str, Any]) -> tuple[str, str]:
    """The name and the region of the cluster of an invalid plan: a deployed cluster needs no valid plan.

    Raises the error if the options and the settings do not determine them.
    """
    wrong = {problem.key for problem in error.problems}
    name = invocation.cluster or settings.get("cluster_name")
    if name is None and wrong <= SETTINGS.keys() - {"cluster_name"}:  # an unknown setting may be a misspelt name
        name = SETTINGS["cluster_name"].default
    region = invocation.region or settings.get("region")
    if OVERRIDE in wrong or not (isinstance(name, str) and isinstance(region, str)):
        echo("--cluster and --region select a deployed cluster without a valid cdk.json.", err=True)
        raise error
    mistakes = ", ".join(dict.fromkeys(problem.shown_key for problem in error.problems))
    echo(f"The settings have mistakes ({mistakes}), which `trn plan` shows. {name} is used as deployed.", err=True)
    return name, region


def _records(invocation: Invocation, region: str) -> Records:
    """The records of a region. Raises UnavailableError."""
    with waiting(f"Looking for clusters in {region} ..."):
        return AwsClustersAccount(region, clients=invocation.clients).records()


def _recorded_plan(records: Records, name: str | None, region: str) -> Plan | None:
    """The plan of the named cluster, or of the only one, from its records; None without a record.

    Raises:
        CliError: There are several clusters.
        UnavailableError: The record is unreadable.
    """
    unreadable = {key: reason for key, reason in records.unreadable.items() if key.split("/")[2:3] == [name]}
    if unreadable or (records.unreadable and not records.readable):
        raise UnavailableError("; ".join((unreadable or records.unreadable).values()))
    names = sorted({record.cluster for record in records.readable})
    if name is None and len(names) > 1:
        message = f"{region} has {len(names)} clusters: {', '.join(names)}. Select one with --cluster."
        raise CliError(message, ExitCode.BAD_INPUT)
    chosen = [record for record in reversed(records.readable) if name in (None, record.cluster)]
    by_engine = {record.engine: record for record in chosen}
    # Nodes first: the settings that engines share are theirs.
    first = [by_engine[key] for key in dict.fromkeys((*ENGINES_WITH_NODES, *ENGINES)) if key in by_engine]
    return deployed_plan(*first, region=region, prices={}) if first else None


def _stacks(invocation: Invocation, region: str) -> ClusterStacks:
    """The stacks of a region, which a command reads once. Raises UnavailableError."""
    known = invocation.cluster_stacks
    if region not in known:
        with waiting(f"Looking for clusters in {region} ..."):
            known[region] = AwsClustersAccount(region, clients=invocation.clients).cluster_stacks()
    return known[region]


def _nodes(invocation: Invocation, region: str, name: str) -> Sequence[ClusterNode]:
    """The nodes of a cluster; also empty if they could not be read, which does not mean that there are none."""
    try:
        nodes = AwsClustersAccount(region, clients=invocation.clients).cluster_nodes()
    except UnavailableError:
        return ()
    return [node for node in nodes if node.cluster == name]


def _not_found(name: str | None, region: str, names: Collection[str]) -> CliError:
    if name is None:
        message = f"There is no cluster in {region}, and no cdk.json in this folder describes one"
    else:
        message = f"In {region} {unknown_name('cluster', name, sorted(names)) if names else 'there is no cluster'}"
    search = "`trn list` also finds stacks without a record, and with --all-regions those of other regions"
    return CliError(f"{message}. {search}.", ExitCode.NOT_READY)
