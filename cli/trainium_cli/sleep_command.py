"""`trn sleep`: no nodes, and none of what costs money without them."""

from pathlib import Path

import click

from trainium_cli.plan_options import context_options
from trainium_cli.sleep_switching import switch


@click.command("sleep")
@context_options
@click.option("--yes", is_flag=True, help="Put it to sleep without asking first, for scripts.")
def sleep(overrides: tuple[str, ...], cdk_json: Path | None, yes: bool) -> None:
    """Put the cluster to sleep: no nodes, next to no cost.

    Its nodes end, and so do the endpoints or the NAT gateway of its network. The compile cache and file systems stay.
    A deployment leaves it asleep; `trn wake` wakes it.

    Exit code 0: it is asleep. 1: it is not. 3: could not tell.
    """
    switch(overrides, cdk_json, asleep=True, yes=yes)
