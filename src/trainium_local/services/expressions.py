"""JMESPath with the functions that rules need and JMESPath lacks."""

import re
from functools import cache
from ipaddress import ip_network
from typing import Any

import jmespath
from jmespath import functions


def search(expression: str, value: Any) -> Any:
    """What a JMESPath expression finds in a value."""
    return _compiled(expression).search(value, _OPTIONS)


@cache
def _compiled(expression: str) -> Any:
    return jmespath.compile(expression)


class _Functions(functions.Functions):
    @functions.signature({"types": ["array"]})
    def _func_distinct(self, values: list[Any]) -> list[Any]:
        return list(dict.fromkeys(values))

    @functions.signature({"types": ["string"]}, {"types": ["array"]})
    def _func_overlaps(self, block: str, others: list[str]) -> bool:
        return any(ip_network(block).overlaps(ip_network(other)) for other in others)

    @functions.signature({"types": ["string"]}, {"types": ["string"]})
    def _func_matches(self, text: str, pattern: str) -> bool:
        return re.search(pattern, text) is not None

    @functions.signature({"types": ["string"]})
    def _func_bucket(self, path: str) -> str:
        return path.removeprefix("s3://").partition("/")[0]

    @functions.signature({"types": ["number"]}, {"types": ["number"]})
    def _func_multiple(self, value: float, step: float) -> bool:
        return value % step == 0

    @functions.signature({"types": ["number"]}, {"types": ["number"]})
    def _func_ratio(self, value: float, other: float) -> float:
        return value / other if other else 0


_OPTIONS = jmespath.Options(custom_functions=_Functions())
