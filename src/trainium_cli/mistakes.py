"""Messages about mistakes in options, in the form of those in a plan."""

from collections.abc import Sequence

import click

from trainium_core.problems import nearest as nearest_of


def mistake(option: str, got: object, *, allowed: str, fix: str, nearest: str | None = None) -> click.UsageError:
    """What was given to which option, what is allowed, what was most likely meant, and what to do."""
    suggestion = f"; nearest: {nearest}" if nearest else ""
    return click.UsageError(f"{option}: got {str(got)!r}\n    allowed: {allowed}{suggestion}\n    fix:     {fix}")


def unknown_name(what: str, given: str, known: Sequence[str]) -> str:
    """That nothing of the kind is called so, what was most likely meant, and what there is."""
    close = nearest_of(given, known)
    return f"no {what} is called {given!r}{f'; nearest: {close}' if close else ''}; known: {', '.join(known)}"
