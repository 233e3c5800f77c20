"""Messages about mistakes in options and names."""

from collections.abc import Sequence

import click

from trainium_core.problems import nearest as nearest_of


def mistake(option: str, got: object, *, allowed: str, fix: str, nearest: str | None = None) -> click.UsageError:
    """The error for an option's value, in the form of problems of a plan: allowed values, nearest match and fix."""
    suggestion = f"; nearest: {nearest}" if nearest else ""
    return click.UsageError(f"{option}: got {str(got)!r}\n    allowed: {allowed}{suggestion}\n    fix:     {fix}")


def unknown_name(what: str, name: str, known: Sequence[str]) -> str:
    """The message about an unknown name, with the nearest match and the known names."""
    close = nearest_of(name, known)
    return f"no {what} is named {name!r}{f'; nearest: {close}' if close else ''}; known: {', '.join(known)}"
