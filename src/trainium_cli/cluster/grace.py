"""The option --grace: how long before their end the nodes are notified."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from trainium_cli.mistakes import mistake
from trainium_core.setting_schema.durations import read_duration
from trainium_core.teardown.notice import DEFAULT_GRACE

Command = TypeVar("Command", bound=Callable[..., Any])

_UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1)}
_LONGEST = timedelta(hours=1)


def in_words(grace: timedelta) -> str:
    """Such as 90s and 2m, as the option takes it."""
    seconds = round(grace.total_seconds())
    return f"{seconds}s" if seconds % 60 else f"{seconds // 60}m"


def _duration(_ctx: click.Context, _param: click.Parameter, given: str) -> timedelta:
    text = given.strip()
    grace = timedelta() if text == "0" else read_duration(text, _UNITS)
    if grace is None or grace > _LONGEST:
        allowed = f"0 for none, or seconds or minutes such as 90s or 5m, at most {in_words(_LONGEST)}"
        raise mistake("--grace", given, allowed=allowed, fix=f"write --grace {in_words(DEFAULT_GRACE)}")
    return grace


def grace_option(command: Command) -> Command:
    return click.option(
        "--grace",
        metavar="TIME",
        default=in_words(DEFAULT_GRACE),
        show_default=True,
        callback=_duration,
        help="How long before their end running nodes are notified, so that jobs save what they have. 0: not at all.",
    )(command)
