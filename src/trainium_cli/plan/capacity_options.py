"""The options that `trn capacity` and `trn capacity buy` share."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import Any

import click

from trainium_cli.mistakes import mistake
from trainium_core.capacity.duration import HOURS_PER_DAY, allowed_durations, block_durations, nearest_duration
from trainium_core.plan import Plan
from trainium_core.problems import nearest

WAYS_TO_GET_CAPACITY = ("capacity", "reservation_id")
"""Settings that do not matter while it is looked for how to get capacity."""


def _block_duration(_ctx: click.Context, _param: click.Parameter, hours: int) -> int:
    if hours not in block_durations():
        raise click.BadParameter(f"{hours} is none; allowed: {allowed_durations()}; nearest: {nearest_duration(hours)}")
    return hours


def latest_start(_ctx: click.Context, _param: click.Parameter, given: str | None) -> datetime | None:
    """The end of that day in UTC."""
    if given is None:
        return None
    now = datetime.now(UTC)
    allowed = f"a day, in UTC, that is not past: {now:%Y-%m-%d} or later"
    try:
        day = date.fromisoformat(given)
    except ValueError as error:
        fix = f"write year, month and day, as in {now:%Y-%m-%d}"
        raise mistake("--start-by", given, allowed=allowed, fix=fix) from error
    end = datetime.combine(day, time.max, tzinfo=UTC)
    if end < now:
        raise mistake("--start-by", given, allowed=allowed, fix="give a later day, or leave the option out")
    return end


def chosen_regions(plan: Plan, given: str | None) -> tuple[str, ...]:
    """The regions asked for, else all that offer the type. Raises click.UsageError for one that does not."""
    offering = tuple(plan.type.zones)
    if given is None:
        return offering
    chosen = tuple(dict.fromkeys(region.strip() for region in given.split(",") if region.strip()))
    for region in chosen:
        if region not in offering:
            close = nearest(region, offering)
            hint = f"; nearest: {close}" if close else ""
            raise click.UsageError(
                f"no region that offers {plan.instance_type} is called {region!r}{hint}; known: {', '.join(offering)}"
            )
    if not chosen:
        raise click.UsageError(f"--regions names none; known: {', '.join(offering)}")
    return chosen


def hours_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--hours",
        type=int,
        default=HOURS_PER_DAY,
        show_default=True,
        callback=_block_duration,
        help="How long the nodes are wanted, as Capacity Blocks are sold: by the day, beyond two weeks by the week.",
    )(command)
