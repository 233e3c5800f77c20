"""Known errors with cause and fix, from data/errors.toml."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache

from trainium_core.facts import DATA


@dataclass(frozen=True, kw_only=True)
class KnownError:
    """pattern: a regular expression for the error's text. source: where it is documented, with the date."""

    name: str
    pattern: str
    cause: str
    fix: str
    source: str
    date: date


@cache
def known_errors() -> Sequence[KnownError]:
    rows = tomllib.loads((DATA / "errors.toml").read_text(encoding="utf-8"))["error"]
    return tuple(KnownError(**row) for row in rows)


def known_error(text: str) -> KnownError | None:
    """The first known error that matches a text; None without a match."""
    return next((one for one in known_errors() if re.search(one.pattern, text)), None)
