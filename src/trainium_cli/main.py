"""The command `trn` and the list of its subcommands."""

import os
import signal
import sys
from typing import TextIO, cast

import click

from trainium_cli.boundary import Boundary
from trainium_cli.exit_codes import ExitCode, exit_code_table
from trainium_cli.interruption import exit_immediately, handle_interrupts
from trainium_cli.invocation import Invocation
from trainium_cli.lazy_group import LazyCommand
from trainium_cli.terminal import WrappedStream

COMMANDS = {
    "init": LazyCommand("trainium_cli.setup.init_command", "Write a plan, a CDK app and a first job into a folder."),
    "doctor": LazyCommand("trainium_cli.setup.doctor_command", "Show what this machine and the account lack."),
    "setup": LazyCommand("trainium_cli.setup.setup_command", "Install Node and the CDK CLI where they are missing."),
    "explain": LazyCommand("trainium_cli.setup.explain_command", "Show the cause of an error and the fix."),
    "types": LazyCommand("trainium_cli.setup.types_command", "Show the instance types a plan can name."),
    "settings": LazyCommand("trainium_cli.setup.settings_command", "Show every setting of a plan, or some."),
    "assess": LazyCommand("trainium_cli.evidence.assess_command", "Show what keeps code from running on Trainium."),
    "plan": LazyCommand("trainium_cli.plan.plan_command", "Check the plan and show what follows from it."),
    "preflight": LazyCommand(
        "trainium_cli.plan.preflight_command", "Check whether the plan can be deployed to the AWS account."
    ),
    "quota": LazyCommand(
        "trainium_cli.plan.quota_command", "Compare the plan with its quota, and request an increase."
    ),
    "capacity": LazyCommand(
        "trainium_cli.plan.capacity_command", "Show where and when the plan's nodes could run, and for how much."
    ),
    "estimate": LazyCommand(
        "trainium_cli.money.estimate_command", "Show what the plan costs running, asleep and for a pilot."
    ),
    "image": LazyCommand("trainium_cli.plan.image_command", "Show the image of the plan's nodes, and pin it."),
    "list": LazyCommand(
        "trainium_cli.cluster.list_command", "Show every cluster of the account.", attribute="list_clusters"
    ),
    "deploy": LazyCommand("trainium_cli.cluster.deploy_command", "Deploy the plan if the account is ready."),
    "nodes": LazyCommand(
        "trainium_cli.cluster.nodes_command", "Show every node of the deployed cluster and its problems."
    ),
    "status": LazyCommand("trainium_cli.cluster.status_command", "Show the cluster on one screen."),
    "run": LazyCommand(
        "trainium_cli.jobs.run_command", "Run a training script on every node, and follow it to its result."
    ),
    "precompile": LazyCommand(
        "trainium_cli.jobs.precompile_command", "Compile a job's graphs on a host without devices."
    ),
    "jobs": LazyCommand(
        "trainium_cli.jobs.jobs_command", "List the jobs of the cluster, or show one with the time of each phase."
    ),
    "logs": LazyCommand("trainium_cli.jobs.logs_command", "Show what a job has printed."),
    "stop": LazyCommand("trainium_cli.jobs.stop_command", "End a job on all its nodes."),
    "cache": LazyCommand("trainium_cli.cache.cache_command", "Show and clean the compile cache."),
    "cp": LazyCommand("trainium_cli.jobs.cp_command", "Copy files to nodes, from nodes, or from a job."),
    "shell": LazyCommand("trainium_cli.cluster.shell_command", "Open a shell on a node."),
    "sleep": LazyCommand("trainium_cli.cluster.sleep_command", "Put the cluster to sleep: no nodes, almost no cost."),
    "wake": LazyCommand("trainium_cli.cluster.wake_command", "Wake a sleeping cluster."),
    "extend": LazyCommand("trainium_cli.cluster.extend_command", "Move the end of the pilot, and show the price."),
    "destroy": LazyCommand(
        "trainium_cli.cluster.destroy_command", "Destroy the cluster and its resources outside of stacks."
    ),
    "baseline": LazyCommand(
        "trainium_cli.evidence.baseline_command", "Show the GPU plan to compare a Trainium plan with."
    ),
    "bench": LazyCommand(
        "trainium_cli.evidence.bench_command", "Measure the same workload on each side, and write a record of each."
    ),
    "pilot": LazyCommand(
        "trainium_cli.evidence.pilot_command", "Run a pilot from the assessment of the code to the final audit."
    ),
    "tco": LazyCommand("trainium_cli.evidence.tco_command", "Show what twelve months of a workload cost."),
    "report": LazyCommand("trainium_cli.evidence.report_command", "Write the report of a pilot, with its decision."),
    "handoff": LazyCommand("trainium_cli.evidence.handoff_command", "Check what a pilot hands over."),
    "cost": LazyCommand("trainium_cli.money.cost_command", "Show past, current and expected costs of the cluster."),
    "audit": LazyCommand(
        "trainium_cli.cluster.audit_command",
        "Show what is left of the cluster, and its cost.",
        attribute="audit_command",
    ),
    "support": LazyCommand("trainium_cli.setup.support_command", "Write an archive for a support request."),
    "permissions": LazyCommand(
        "trainium_cli.setup.permissions_command", "Show the IAM policies that people and CloudFormation need."
    ),
    "local": LazyCommand("trainium_cli.local.local_command", "Run an AWS on this machine, and commands against it."),
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
    """From an empty AWS account to a verified AWS Trainium cluster.

    The plan comes from the trn:... settings in the context of cdk.json, as for `cdk deploy`.
    """
    ctx.obj = Invocation()


def main() -> None:
    """Run the command."""
    if sys.argv[1:2] == ["local"]:  # This ends what it has started.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    else:
        handle_interrupts()
    if "TRN_DEBUG" not in os.environ:
        sys.stderr = cast("TextIO", WrappedStream(sys.stderr))
    try:
        trn(prog_name="trn")
    except SystemExit as ended:
        if ended.code == ExitCode.INTERRUPTED:
            exit_immediately(ExitCode.INTERRUPTED)
        raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # The command has ended; Python would otherwise show a traceback.
