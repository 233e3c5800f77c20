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

_GROUPS = {
    "Everyday commands": {
        "init": ("setup", "Write a plan, a CDK app and a first job into a folder."),
        "up": ("cluster", "Deploy what a script needs, run the script, and fetch its results."),
        "run": ("jobs", "Run a training script on every node, and follow it to its result."),
        "logs": ("jobs", "Show what a job has printed."),
        "jobs": ("jobs", "List the jobs of the cluster, or show one with the time of each phase."),
        "status": ("cluster", "Show the cluster on one screen."),
        "cost": ("money", "Show past, current and expected costs of the cluster."),
        "sleep": ("cluster", "Put the cluster to sleep: terminate its nodes until `trn wake`."),
        "wake": ("cluster", "Wake a sleeping cluster."),
        "down": ("cluster", "Destroy the cluster, and verify that nothing is left."),
    },
    "Plan": {
        "assess": ("evidence", "Show what keeps code from running on Trainium."),
        "types": ("setup", "Show the instance types a plan can name."),
        "settings": ("setup", "Show every setting of a plan, or some."),
        "plan": ("plan", "Check the plan and show what follows from it."),
        "estimate": ("money", "Show what the plan costs running, asleep and for a pilot."),
        "preflight": ("plan", "Check whether the plan can be deployed to the AWS account."),
        "quota": ("plan", "Compare the plan with its quota, and request an increase."),
        "capacity": ("plan", "Show where and when the plan's nodes could run, and for how much."),
        "image": ("plan", "Show the image of the plan's nodes, and pin it."),
    },
    "Cluster": {
        "deploy": ("cluster", "Deploy the plan if the account is ready."),
        "list": ("cluster", "Show the clusters of the account in one region or all."),
        "nodes": ("cluster", "Show every node of the deployed cluster and its problems."),
        "extend": ("cluster", "Move the end of the pilot, and show the price."),
        "destroy": ("cluster", "Destroy the cluster and its resources outside of stacks."),
        "audit": ("cluster", "Show what is left of the cluster, and its cost."),
    },
    "Jobs and nodes": {
        "stop": ("jobs", "End a job on all its nodes."),
        "cp": ("jobs", "Copy files to nodes, from nodes, or from a job."),
        "shell": ("cluster", "Open a shell on a node, or forward a port to it."),
        "cache": ("cache", "Show and clean the compile cache."),
    },
    "Decision": {
        "pilot": ("evidence", "Run a pilot from the assessment of the code to the final audit."),
        "baseline": ("evidence", "Show the GPU plan to compare a Trainium plan with."),
        "bench": ("evidence", "Measure the same workload on each side, and write a results file of each."),
        "tco": ("evidence", "Show the total cost of ownership (TCO) of a workload."),
        "report": ("evidence", "Write the report of a pilot, with its decision."),
    },
    "This machine and account": {
        "doctor": ("setup", "Show what this machine and the account lack."),
        "explain": ("setup", "Show the cause of an error and the fix."),
        "permissions": ("setup", "Show the IAM policies that people and CloudFormation need."),
        "support": ("setup", "Write an archive for a support request."),
        "local": ("local", "Emulate AWS on this machine, and run commands against it."),
    },
}
"""The folder and the summary of each command, by group, in the order of the help."""

COMMANDS = {
    name: LazyCommand(
        module=f"trainium_cli.{folder}.{name}_command",
        summary=summary,
        attribute="list_clusters" if name == "list" else name,
        group=group,
    )
    for group, commands in _GROUPS.items()
    for name, (folder, summary) in commands.items()
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
    if sys.argv[1:2] == ["local"]:  # On KeyboardInterrupt, `trn local` ends the server that it is starting.
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
