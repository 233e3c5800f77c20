"""`trn down`: destroys the cluster, and verifies that nothing is left."""

from datetime import timedelta
from pathlib import Path

import click

from trainium_cli.cluster.audit_command import audit_cluster
from trainium_cli.cluster.destroy_command import destroy
from trainium_cli.cluster.node_end import grace_option
from trainium_cli.cluster_choice import cluster_stack_names, read_tagged_plan
from trainium_cli.exit_codes import ExitCode
from trainium_cli.interruption import interrupt_message
from trainium_cli.invocation import Invocation, cluster_options, context_options, pass_invocation


@click.command()
@grace_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation, for scripts.")
@cluster_options
@context_options
@interrupt_message("Interrupted: nothing was destroyed.")
@pass_invocation
def down(invocation: Invocation, grace: timedelta, yes: bool) -> ExitCode:
    """Destroy the cluster, and verify that nothing is left.

    Runs `trn destroy`, and then `trn audit`.

    Exit code 0: nothing is left, and everything was read. 1: something is left, or not confirmed. 3: unknown.
    """
    return take_down(invocation, grace=grace, yes=yes)


def take_down(invocation: Invocation, *, grace: timedelta, yes: bool) -> ExitCode:
    """Run `trn destroy`, and `trn audit` if it succeeds. Returns the exit code of the last one."""
    plan = read_tagged_plan(invocation, may_be_gone=True)
    stacks = cluster_stack_names(invocation, plan)
    context = click.get_current_context()
    destroyed: ExitCode = context.invoke(destroy, grace=grace, whole_stacks=False, yes=yes)
    return destroyed or audit_cluster(invocation, plan, stacks, Path())
