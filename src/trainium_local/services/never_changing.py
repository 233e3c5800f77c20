"""Answers of moto that never change, and that it works out anew for each request."""

from collections.abc import Callable, Iterable
from functools import cache


@cache
def method_names(original: Callable[[type], list[str]], response_class: type) -> list[str]:
    return original(response_class)


@cache
def moto_modules(original: Callable[[], Iterable[str]]) -> frozenset[str]:
    return frozenset(original())
