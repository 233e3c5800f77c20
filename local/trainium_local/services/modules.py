"""The services that moto has."""

from collections.abc import Callable, Iterable
from functools import cache


@cache
def list_of_moto_modules(original: Callable[[], Iterable[str]]) -> frozenset[str]:
    """Their names, read from moto's folder once."""
    return frozenset(original())
