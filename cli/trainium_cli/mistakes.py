"""How a mistake in an option is told: as one in a plan is."""

import click


def mistake(option: str, got: object, *, allowed: str, fix: str, nearest: str | None = None) -> click.UsageError:
    """What was given to which option, what is allowed, what was most likely meant, and what to do."""
    suggestion = f"; nearest: {nearest}" if nearest else ""
    return click.UsageError(f"{option}: got {str(got)!r}\n    allowed: {allowed}{suggestion}\n    fix:     {fix}")
