"""Options that several commands on a plan share: checks, regions and duration."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import click

from trainium_cli.invocation import Command
from trainium_cli.mistakes import unknown_name
from trainium_core.capacity.search import HOURS_PER_DAY, allowed_durations, block_durations, nearest_duration
from trainium_core.plan import Plan

WAYS_TO_GET_CAPACITY = ("capacity", "reservation_id")
"""Settings that a search for capacity ignores."""


def suppress_option(
    checks: Collection[str], *, meaning: str = "Skip this check, and show that it was skipped."
) -> Callable[[Command], Command]:
    def check_names(_ctx: click.Context, _param: click.Parameter, names: Sequence[str]) -> frozenset[str]:
        for name in names:
            if name not in checks:
                raise click.BadParameter(unknown_name("check", name, tuple(checks)))
        return frozenset(names)

    return click.option(
        "--suppress",
        "suppressed",
        multiple=True,
        callback=check_names,
        metavar="CHECK",
        help=f"{meaning} Repeatable. Checks: {', '.join(checks)}.",
    )


def chosen_regions(plan: Plan, regions: str | None) -> tuple[str, ...]:
    """The regions of --regions, else all that offer the type. Raises UsageError if one does not offer the type."""
    offering = tuple(plan.type.zones)
    if regions is None:
        return offering
    chosen = tuple(dict.fromkeys(region.strip() for region in regions.split(",") if region.strip()))
    for region in chosen:
        if region not in offering:
            raise click.UsageError(unknown_name(f"region that offers {plan.instance_type}", region, offering))
    if not chosen:
        raise click.UsageError(f"--regions is empty; known: {', '.join(offering)}")
    return chosen


def _block_duration(_ctx: click.Context, _param: click.Parameter, hours: int) -> int:
    if hours not in block_durations():
        raise click.BadParameter(
            f"Capacity Blocks of {hours} hours are not sold; allowed: {allowed_durations()}; "
            f"nearest: {nearest_duration(hours)}"
        )
    return hours


def hours_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--hours",
        metavar="HOURS",
        type=int,
        default=HOURS_PER_DAY,
        show_default=True,
        callback=_block_duration,
        help="Hours that the nodes are needed, as for Capacity Blocks: whole days up to two weeks, then whole weeks.",
    )(command)
