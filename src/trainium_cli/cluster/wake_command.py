"""`trn wake`: wakes a sleeping cluster."""

import click

from trainium_cli.cluster.sleep_switching import switch
from trainium_cli.invocation import Invocation, context_options, pass_invocation, stack_option
from trainium_cli.terminal import say


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask for confirmation, for scripts.")
@stack_option
@context_options
@pass_invocation
def wake(invocation: Invocation, stack: str | None, yes: bool) -> None:
    """Wake a sleeping cluster.

    Restores the network and then the nodes, and waits until every node is verified; before a Capacity Block starts, it
    does not wait for nodes. After the end of the pilot, run `trn extend` first.

    Exit code 0: awake. 1: not awake, not all nodes are verified, or not confirmed. 3: unknown.
    """
    say(switch(invocation, stack, "awake", yes=yes))
