"""`trn wake`: the nodes come back."""

from pathlib import Path

import click

from trainium_cli.cluster.sleep_switching import switch
from trainium_cli.cluster_selection import stack_option
from trainium_cli.plan_options import context_options


@click.command()
@context_options
@stack_option
@click.option("--yes", is_flag=True, help="Wake it without asking first, for scripts.")
def wake(overrides: tuple[str, ...], cdk_json: Path | None, stack: str | None, yes: bool) -> None:
    """Wake the cluster that was put to sleep.

    Its network comes back first, then its nodes; ends when every node has proved itself. After the end of the pilot no
    nodes would come: `trn extend` moves it.

    Exit code 0: it is awake. 1: it is not. 3: could not tell.
    """
    switch(overrides, cdk_json, stack, asleep=False, yes=yes)
