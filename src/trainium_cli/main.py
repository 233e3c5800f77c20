"""`trn`: what a plan needs, what stands in its way, and an AWS on this machine to try it on."""

import os
import signal
import sys
from typing import TextIO, cast

import click

from trainium_cli.boundary import Boundary
from trainium_cli.exit_codes import ExitCode, exit_code_table
from trainium_cli.interruption import end_at_once, handle_interrupts
from trainium_cli.invocation import Invocation
from trainium_cli.lazy_group import LazyCommand
from trainium_cli.terminal import WrappedStream

COMMANDS = {
    "init": LazyCommand(
        module="trainium_cli.setup.init_command",
        attribute="init",
        summary="Write a plan, a CDK app and a first job into a folder.",
    ),
    "doctor": LazyCommand(
        module="trainium_cli.setup.doctor_command",
        attribute="doctor",
        summary="Show what this machine and the account lack.",
    ),
    "setup": LazyCommand(
        module="trainium_cli.setup.setup_command",
        attribute="setup",
        summary="Install Node and the CDK CLI where they are missing.",
    ),
    "explain": LazyCommand(
        module="trainium_cli.setup.explain_command",
        attribute="explain",
        summary="Show the cause of an error, and what helps.",
    ),
    "types": LazyCommand(
        module="trainium_cli.setup.types_command",
        attribute="types",
        summary="Show the instance types a plan can name.",
    ),
    "settings": LazyCommand(
        module="trainium_cli.setup.settings_command",
        attribute="settings",
        summary="Show every setting of a plan, or some.",
    ),
    "plan": LazyCommand(
        module="trainium_cli.plan.plan_command",
        attribute="plan",
        summary="Check the plan and show what follows from it.",
    ),
    "preflight": LazyCommand(
        module="trainium_cli.plan.preflight_command",
        attribute="preflight",
        summary="Ask the AWS account whether the plan can be deployed.",
    ),
    "quota": LazyCommand(
        module="trainium_cli.plan.quota_command",
        attribute="quota",
        summary="Show what the plan lacks of a quota, and ask AWS for it.",
    ),
    "capacity": LazyCommand(
        module="trainium_cli.plan.capacity_command",
        attribute="capacity",
        summary="Show what could run when, where, for how much.",
    ),
    "estimate": LazyCommand(
        module="trainium_cli.money.estimate_command",
        attribute="estimate",
        summary="Show what the plan costs running, asleep and for a pilot.",
    ),
    "image": LazyCommand(
        module="trainium_cli.plan.image_command",
        attribute="image",
        summary="Show the image of the plan's nodes, and pin it.",
    ),
    "list": LazyCommand(
        module="trainium_cli.cluster.list_command",
        attribute="list_clusters",
        summary="Show every cluster of the account.",
    ),
    "deploy": LazyCommand(
        module="trainium_cli.cluster.deploy_command",
        attribute="deploy",
        summary="Deploy the plan, if the account is ready for it.",
    ),
    "nodes": LazyCommand(
        module="trainium_cli.cluster.nodes_command",
        attribute="nodes",
        summary="Show every node of the deployed cluster, and what is wrong.",
    ),
    "status": LazyCommand(
        module="trainium_cli.cluster.status_command",
        attribute="status",
        summary="Show the cluster on one screen.",
    ),
    "run": LazyCommand(
        module="trainium_cli.jobs.run_command",
        attribute="run",
        summary="Run a training script on every node, and follow it to its result.",
    ),
    "precompile": LazyCommand(
        module="trainium_cli.jobs.precompile_command",
        attribute="precompile",
        summary="Compile a script's graphs on a host without devices.",
    ),
    "jobs": LazyCommand(
        module="trainium_cli.jobs.jobs_command",
        attribute="jobs",
        summary="List the jobs of the cluster, or show where the time of one went.",
    ),
    "logs": LazyCommand(
        module="trainium_cli.jobs.logs_command",
        attribute="logs",
        summary="Show what a job has printed.",
    ),
    "stop": LazyCommand(
        module="trainium_cli.jobs.stop_command",
        attribute="stop",
        summary="End a job on all its nodes.",
    ),
    "cache": LazyCommand(
        module="trainium_cli.cache.cache_command",
        attribute="cache",
        summary="Show and keep the compile cache.",
    ),
    "cp": LazyCommand(
        module="trainium_cli.jobs.cp_command",
        attribute="cp",
        summary="Copy files to nodes, from nodes, or from a job.",
    ),
    "shell": LazyCommand(
        module="trainium_cli.cluster.shell_command",
        attribute="shell",
        summary="Open a shell on a node.",
    ),
    "sleep": LazyCommand(
        module="trainium_cli.cluster.sleep_command",
        attribute="sleep",
        summary="Put the cluster to sleep: no nodes, next to no cost.",
    ),
    "wake": LazyCommand(
        module="trainium_cli.cluster.wake_command",
        attribute="wake",
        summary="Wake the cluster that was put to sleep.",
    ),
    "extend": LazyCommand(
        module="trainium_cli.cluster.extend_command",
        attribute="extend",
        summary="Let the pilot end later, and say the price.",
    ),
    "destroy": LazyCommand(
        module="trainium_cli.cluster.destroy_command",
        attribute="destroy",
        summary="Destroy the cluster, and what is left of it outside its stacks.",
    ),
    "cost": LazyCommand(
        module="trainium_cli.money.cost_command",
        attribute="cost",
        summary="Show what the cluster has cost, costs now, and will have cost.",
    ),
    "audit": LazyCommand(
        module="trainium_cli.cluster.audit_command",
        attribute="audit_command",
        summary="Show what is left of the cluster, and what that costs.",
    ),
    "support": LazyCommand(
        module="trainium_cli.setup.support_command",
        attribute="support",
        summary="Write an archive for the person who helps.",
    ),
    "permissions": LazyCommand(
        module="trainium_cli.setup.permissions_command",
        attribute="permissions",
        summary="Show the IAM policies that people and CloudFormation need.",
    ),
    "sagemaker": LazyCommand(
        module="trainium_cli.jobs.sagemaker_command",
        attribute="sagemaker",
        summary="Run the plan's training as SageMaker jobs.",
    ),
    "local": LazyCommand(
        module="trainium_cli.local.local_command",
        attribute="local",
        summary="Run an AWS on this machine, and commands against it.",
    ),
}


@click.group(
    "trn",
    cls=Boundary,
    lazy_commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"\b\nExit codes:\n{exit_code_table()}",
)
@click.version_option(package_name="trainium-cdk", prog_name="trn")
@click.pass_context
def trn(ctx: click.Context) -> None:
    """From an empty AWS account to a proven AWS Trainium cluster.

    The plan is read from the settings trn:... in the context of cdk.json, as `cdk deploy` reads it.
    """
    ctx.obj = Invocation()


def main() -> None:
    """Run the command."""
    if sys.argv[1:2] == ["local"]:  # which ends what it has started
        signal.signal(signal.SIGINT, signal.default_int_handler)
    else:
        handle_interrupts()
    if "TRN_DEBUG" not in os.environ:
        sys.stderr = cast("TextIO", WrappedStream(sys.stderr))
    try:
        trn(prog_name="trn")
    except SystemExit as ended:
        if ended.code == ExitCode.INTERRUPTED:
            end_at_once(ExitCode.INTERRUPTED)
        raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is over; Python's own end would show where in that it was
