"""Tables and text of the code as Markdown."""

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]*`)")
_SPECIAL = re.compile(r"([*|\[\]\\]|<|>|(?<!\w)_+|_+(?!\w))")
_ENTITIES = {"<": "&lt;", ">": "&gt;"}


def text(plain: str) -> str:
    """A docstring or message as one paragraph; code in it stays code."""
    parts = _CODE.split(" ".join(plain.split()))
    return "".join(part.replace("|", "\\|") if part.startswith("`") else _SPECIAL.sub(_escaped, part) for part in parts)


def _escaped(match: re.Match[str]) -> str:
    return _ENTITIES.get(match[1]) or "".join(f"\\{character}" for character in match[1])


def code(plain: object) -> str:
    """Inline code, also in a cell of a table."""
    return f"`{plain}`".replace("|", "\\|")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
