"""Selects the cluster of a command: the named one, that of cdk.json, or the only one in the region."""

import os
from collections.abc import Collection, Sequence
from typing import Any

import boto3.session
from botocore.exceptions import BotoCoreError

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import SELECTING_SETTINGS, Invocation
from trainium_cli.mistakes import unknown_name
from trainium_cli.terminal import echo
from trainium_cli.waiting import waiting
from trainium_core.clusters.aws_account import AwsClustersAccount
from trainium_core.clusters.cluster import ClusterNode, ClusterStack, ClusterStacks
from trainium_core.clusters.locating import LocatedCluster, deployed_plan, located
from trainium_core.engines.ec2.engine import EC2
from trainium_core.engines.registry import ENGINES_WITH_NODES
from trainium_core.plan import Plan
from trainium_core.plan.context import settings_given
from trainium_core.problems import SETTING_PREFIX
from trainium_runtime.errors import UnavailableError


def read_cluster_plan(invocation: Invocation, *, ignoring: Collection[str] = (), may_be_gone: bool = False) -> Plan:
    """The plan of the selected cluster.

    If -c and cdk.json have only settings that select a cluster, or the options select another one, the plan is derived
    from the deployed stacks.

    Args:
        invocation: The options.
        ignoring: Settings of -c and cdk.json whose values are ignored.
        may_be_gone: A named cluster may no longer have stacks.

    Raises:
        CliError: No cluster or region is selected, or the cluster does not exist.
        PlanError: The plan has mistakes.
        UnavailableError: AWS could not be read.
    """
    name, region = invocation.cluster, invocation.region
    settings = settings_given(invocation.cdk_json, invocation.overrides)
    if settings.keys() - SELECTING_SETTINGS:
        plan = invocation.plan(ignoring=ignoring)
        if name in (None, plan.cluster_name) and region in (None, plan.region):
            return plan
        settings = {"cluster_name": plan.cluster_name, "region": plan.region}
        name = name or plan.cluster_name
    name = name or settings.get("cluster_name")
    region = region or settings.get("region") or configured_region(invocation)
    found = _stacks(invocation, region)
    cluster = _gone(name, region, found) if may_be_gone else None
    cluster = cluster or _only_nodes(invocation, name, region, found)
    cluster = cluster or _selected_cluster(located(found), found, name, region)
    return deployed_plan(AwsClustersAccount(region, clients=invocation.clients), cluster, region)


def cluster_stack_name(invocation: Invocation, plan: Plan, stack: str | None) -> str:
    """The CloudFormation stack of the nodes: the one of --stack, else a stack with nodes and the cluster's tag.

    The stack with the usual name is preferred. That name is also returned if no such stack is found.
    """
    if stack:
        return stack
    found = [stack.name for stack in _cluster_stacks(invocation, plan) if stack.has_nodes]
    usual = plan.stack_names[next((key for key in ENGINES_WITH_NODES if key in plan.stacks), EC2.key)]
    return usual if usual in found or not found else found[0]


def cluster_stack_names(invocation: Invocation, plan: Plan, stacks: Collection[str] = ()) -> tuple[str, ...]:
    """The CloudFormation stacks: those of --stack, else the usual names and the stacks with the cluster's tag.

    If no stack with the tag is found, the stacks in the tags of the nodes are used instead. They may be deleted.
    """
    if stacks:
        return tuple(stacks)
    found = [stack.name for stack in _cluster_stacks(invocation, plan)]
    if not found:
        nodes = _nodes(invocation, plan.region, plan.cluster_name)
        found = [node.stack for node in nodes if node.stack is not None]
    return tuple(dict.fromkeys([*plan.stack_names.values(), *found]))


def unreadable_stacks(invocation: Invocation, plan: Plan) -> Sequence[str]:
    """Why stacks of the region, which may belong to the cluster, could not be read."""
    try:
        return _stacks(invocation, plan.region).not_read
    except UnavailableError as error:
        return [str(error)]


def others_sentence(invocation: Invocation, plan: Plan) -> str:
    """A sentence that lists other clusters; empty if there are none, or they cannot be read."""
    try:
        found = located(_stacks(invocation, plan.region))
    except UnavailableError:
        return ""
    others = [cluster.name for cluster in found if cluster.name != plan.cluster_name]
    return f" Other clusters, for --cluster: {', '.join(others)}." if others else ""


def missing_stack(invocation: Invocation, plan: Plan, stack: str) -> CliError:
    """The error for a stack that does not exist."""
    message = f"Stack {stack} does not exist in {plan.region}: `trn deploy` creates it."
    return CliError(f"{message}{others_sentence(invocation, plan)}", ExitCode.NOT_READY)


def configured_region(invocation: Invocation) -> str:
    """The region of --region, the environment or the profile.

    Raises:
        CliError: No region is set.
        UnavailableError: The profile does not exist.
    """
    if invocation.region:
        return invocation.region
    try:
        session: Any = boto3.session.Session()
    except BotoCoreError as error:
        raise UnavailableError(str(error)) from error
    region: str | None = os.environ.get("AWS_REGION") or session.region_name
    if region is None:
        message = (
            f"No region: pass --region, set AWS_REGION, or run in the folder of a cdk.json with {SETTING_PREFIX}region."
        )
        raise CliError(message, ExitCode.BAD_INPUT)
    return region


def _cluster_stacks(invocation: Invocation, plan: Plan) -> Sequence[ClusterStack]:
    """The stacks with the cluster's tag; empty if they could not be read.

    The command then uses the usual names, and its own requests report missing permissions.
    """
    try:
        found = _stacks(invocation, plan.region)
    except UnavailableError:
        return ()
    return [stack for stack in found.stacks if stack.cluster == plan.cluster_name]


def _stacks(invocation: Invocation, region: str) -> ClusterStacks:
    """The stacks of a region, which a command reads once. Raises UnavailableError."""
    known = invocation.cluster_stacks
    if region not in known:
        with waiting(f"Looking for clusters in {region} ..."):
            known[region] = AwsClustersAccount(region, clients=invocation.clients).cluster_stacks()
    return known[region]


def _gone(name: str | None, region: str, found: ClusterStacks) -> LocatedCluster | None:
    """A named cluster without stacks. Prints a note, because the name may be misspelt."""
    names = {stack.cluster for stack in found.stacks}
    if name is None or found.not_read or name in names:
        return None
    others = f"; clusters with stacks: {', '.join(sorted(names))}" if names else ""
    message = f"No stack in {region} belongs to {name}{others}. --stack NAME also finds leftovers of a deleted stack."
    echo(message, err=True)
    return LocatedCluster(name=name, stacks=())


def _only_nodes(invocation: Invocation, name: str | None, region: str, found: ClusterStacks) -> LocatedCluster | None:
    """A named cluster that has nodes but no stack. Prints a note."""
    if name is None or found.not_read or any(stack.cluster == name for stack in found.stacks):
        return None
    if not _nodes(invocation, region, name):
        return None
    message = f"No stack in {region} belongs to {name}, but nodes do. To terminate them: "
    message += f"`trn destroy --cluster {name} --region {region}`."
    echo(message, err=True)
    return LocatedCluster(name=name, stacks=())


def _nodes(invocation: Invocation, region: str, name: str) -> Sequence[ClusterNode]:
    """The nodes of a cluster; also empty if they could not be read, which does not mean that there are none."""
    try:
        nodes = AwsClustersAccount(region, clients=invocation.clients).cluster_nodes()
    except UnavailableError:
        return ()
    return [node for node in nodes if node.cluster == name]


def _selected_cluster(
    clusters: Sequence[LocatedCluster], found: ClusterStacks, name: str | None, region: str
) -> LocatedCluster:
    """The cluster of that name, or the only one."""
    names = [cluster.name for cluster in clusters]
    chosen = [cluster for cluster in clusters if name in (None, cluster.name)]
    if len(chosen) == 1:
        return chosen[0]
    if name is None and clusters:
        message = f"{region} has {len(clusters)} clusters: {', '.join(names)}. Select one with --cluster."
        raise CliError(message, ExitCode.BAD_INPUT)
    if found.not_read:
        raise UnavailableError("; ".join(found.not_read))
    if name is None:
        message = f"There is no cluster in {region}, and no cdk.json in this folder describes one"
    else:
        message = f"In {region} {unknown_name('cluster', name, names) if names else 'there is no cluster'}"
    raise CliError(f"{message}. `trn list --all-regions` searches other regions.", ExitCode.NOT_READY)
