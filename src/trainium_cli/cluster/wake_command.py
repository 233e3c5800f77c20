"""`trn wake`: the nodes come back."""

import click

from trainium_cli.cluster.sleep_switching import switch
from trainium_cli.invocation import Invocation, context_options, pass_invocation, stack_option
from trainium_cli.terminal import say


@click.command()
@context_options
@stack_option
@click.option("--yes", is_flag=True, help="Wake it without asking first, for scripts.")
@pass_invocation
def wake(invocation: Invocation, stack: str | None, yes: bool) -> None:
    """Wake the cluster that was put to sleep.

    Its network comes back first, then its nodes; ends when every node has proved itself. After the end of the pilot no
    nodes would come: `trn extend` moves it.

    Exit code 0: it is awake. 1: it is not. 3: unknown.
    """
    say(switch(invocation, stack, "awake", yes=yes))
