"""The option --suppress: checks of a preflight, by name, that are not to be asked."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import click

from trainium_cli.mistakes import unknown_name

Command = TypeVar("Command", bound=Callable[..., Any])


def suppress_option(
    checks: Collection[str], *, meaning: str = "Do not ask this one, and say so."
) -> Callable[[Command], Command]:
    def known(_ctx: click.Context, _param: click.Parameter, given: Sequence[str]) -> frozenset[str]:
        for name in given:
            if name not in checks:
                raise click.BadParameter(unknown_name("check", name, tuple(checks)))
        return frozenset(given)

    return click.option(
        "--suppress",
        "suppressed",
        multiple=True,
        callback=known,
        metavar="CHECK",
        help=f"{meaning} Repeatable. Checks: {', '.join(checks)}.",
    )
