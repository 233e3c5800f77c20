"""`trn sleep`: puts the cluster to sleep."""

from datetime import timedelta

import click

from trainium_cli.cluster.node_end import grace_option
from trainium_cli.cluster.sleep_switching import switch
from trainium_cli.invocation import Invocation, context_options, pass_invocation, stack_option
from trainium_cli.terminal import say


@click.command("sleep")
@grace_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation, for scripts.")
@stack_option
@context_options
@pass_invocation
def sleep(invocation: Invocation, stack: str | None, grace: timedelta, yes: bool) -> None:
    """Put the cluster to sleep: terminate its nodes until `trn wake`.

    Notifies and terminates the nodes, and deletes the interface endpoints or the NAT gateway of the cluster. The
    compile cache and file systems stay. A later deployment leaves the cluster asleep; `trn wake` wakes it. If the
    cluster's app has no SleepSwitch, `trn sleep` only terminates the nodes.

    Exit code 0: asleep, or without nodes if its app has no SleepSwitch. 1: not asleep, or not confirmed. 3: unknown.
    """
    say(switch(invocation, stack, "asleep", yes=yes, grace=grace))
