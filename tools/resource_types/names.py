"""Whether a schema's name and an API's name mean the same: they differ in case, number, and by the type's own name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

#: Endings that one side leaves out: a property `Role` is an argument `RoleArn`.
_ENDINGS = (
    "arn",
    "arns",
    "id",
    "ids",
    "identifier",
    "identifiers",
    "name",
    "names",
    "text",
    "string",
    "document",
    "body",
)


@cache
def singular(name: str) -> str:
    """policies -> policy, addresses -> address, groups -> group, in lower case."""
    name = name.lower()
    if name.endswith("ies"):
        return name[:-3] + "y"
    if name.endswith(("sses", "xes", "ches")):
        return name[:-2]
    return name[:-1] if name.endswith("s") and not name.endswith(("ss", "dns", "us")) else name


def distance(a: str, b: str, nouns: Iterable[str]) -> int | None:
    """How far two names are from each other, 0 for the same; None if they mean different things."""
    return _distance(a, b, tuple(nouns))


@cache
def _distance(a: str, b: str, nouns: tuple[str, ...]) -> int | None:
    x, y = a.lower(), b.lower()
    if x == y:
        return 0
    x, y = singular(a), singular(b)
    if x == y:
        return 1
    for noun in map(str.lower, nouns):
        if noun + x == y or noun + y == x:
            return 2
    for ending in _ENDINGS:
        if x + singular(ending) == y or y + singular(ending) == x:
            return 3
    return None


def nearest(name: str, candidates: Iterable[str], nouns: Iterable[str], limit: int = 3) -> str | None:
    """The candidate with the least distance to a name."""
    nouns = tuple(nouns)
    found = [(far, one) for one in candidates if (far := distance(name, one, nouns)) is not None and far <= limit]
    return min(found)[1] if found else None
