"""What the completion of a shell asks the account for, of the cluster that the rest of the line is about."""

from collections.abc import Sequence
from typing import Any

import botocore.session
import click
from botocore.exceptions import BotoCoreError

from trainium_cli.cluster_selection import command_clients, completed_region, read_cluster_plan, stack_of_cluster
from trainium_cli.jobs.job_cluster import cluster_jobs, newest_first
from trainium_cli.plan_options import IRRELEVANT_LATER
from trainium_core.clusters.aws_account import AwsClustersAccount
from trainium_core.engines.ec2 import EC2
from trainium_core.jobs.aws_jobs import AwsJobs
from trainium_core.plan import Plan
from trainium_runtime.errors import UnavailableError

NO_ANSWER = (UnavailableError, BotoCoreError, click.exceptions.Exit, click.ClickException)
"""What a question ends with where it has no answer."""


def cluster_names(_ctx: click.Context) -> Sequence[str]:
    """The clusters of the region."""
    _check_silent()
    stacks = AwsClustersAccount(completed_region(), clients=command_clients()).cluster_stacks().stacks
    return sorted({stack.cluster for stack in stacks})


def node_ids(ctx: click.Context) -> Sequence[str]:
    """The nodes of the cluster."""
    plan = _plan(ctx)
    nodes = AwsClustersAccount(plan.region, clients=command_clients()).cluster_nodes()
    return sorted(node.instance_id for node in nodes if node.cluster == plan.cluster_name and not node.compiles_ahead)


def job_ids(ctx: click.Context) -> Sequence[str]:
    """The jobs of the cluster, the newest first."""
    jobs = _jobs(ctx)
    return newest_first(jobs.job_ids()) if jobs else ()


def ranks(ctx: click.Context) -> Sequence[str]:
    """The processes of the job on the line, else of the last one."""
    jobs = _jobs(ctx)
    if jobs is None:
        return ()
    given: Any = ctx.params.get("job")
    current = None if given else jobs.current()
    job = jobs.job(given) if given else current.job if current else None
    return [str(rank) for rank in range(job.nodes * job.processes_per_node)] if job else ()


def _plan(ctx: click.Context) -> Plan:
    _check_silent()
    overrides: Any = ctx.params.get("overrides")
    return read_cluster_plan(ctx.params.get("cdk_json"), overrides or (), as_json=False, ignoring=IRRELEVANT_LATER)


def _jobs(ctx: click.Context) -> AwsJobs | None:
    """By the stack's usual name where it has one: all stacks are looked through for no more than what is left."""
    plan, stack = _plan(ctx), ctx.params.get("stack")
    usual = None if stack else cluster_jobs(plan, plan.stack_names[EC2.key])
    return usual or cluster_jobs(plan, stack_of_cluster(plan, stack))


def _check_silent() -> None:
    """Raises UnavailableError for a profile that would ask for the code of a second factor, in the middle of a line."""
    if "mfa_serial" in botocore.session.Session().get_scoped_config():
        raise UnavailableError("the profile asks for a code")
