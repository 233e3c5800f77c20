"""The options that `trn capacity` and `trn capacity buy` share."""

from collections.abc import Callable
from typing import Any

import click

from trainium_core.capacity.duration import HOURS_PER_DAY, allowed_durations, block_durations, nearest_duration

WAYS_TO_GET_CAPACITY = ("capacity", "reservation_id")
"""Settings that do not matter while it is looked for how to get capacity."""


def _block_duration(_ctx: click.Context, _param: click.Parameter, hours: int) -> int:
    if hours not in block_durations():
        raise click.BadParameter(
            f"{hours} is not sold; allowed: {allowed_durations()}; nearest: {nearest_duration(hours)}"
        )
    return hours


def hours_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--hours",
        type=int,
        default=HOURS_PER_DAY,
        show_default=True,
        callback=_block_duration,
        help="How long the nodes are wanted, as Capacity Blocks are sold: by the day, beyond two weeks by the week.",
    )(command)
