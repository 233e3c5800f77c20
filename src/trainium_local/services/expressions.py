"""JMESPath rules, with additional functions."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any
from zoneinfo import available_timezones

import jmespath
from jmespath import functions
from moto.ec2.models.instance_types import INSTANCE_TYPES

from trainium_local.services.errors import Refused


def refusals(rules: list[dict[str, str]], values: Mapping[str, Any]) -> Iterator[Refused]:
    """Yield a refusal for each rule whose `when` is true. Its message can use `found` and the input."""
    for rule in rules:
        if found := search(rule["when"], values):
            words = rule["message"].format_map(defaultdict(str, {**values, "found": found}))
            yield Refused(rule.get("code", "BadRequest"), words)


def search(expression: str, value: Any) -> Any:
    """Return the result of a JMESPath expression."""
    return _compiled(expression).search(value, _OPTIONS)


@cache
def _compiled(expression: str) -> Any:
    return jmespath.compile(expression)


_UNITS = ("minute", "minutes", "hour", "hours", "day", "days")
_CRON = [
    # minutes, hours, day of month, month, day of week, year
    rf"(\*|({field})(-({field}))?)(/\d+)?(,(({field})(-({field}))?)(/\d+)?)*"
    for field in (
        r"[0-5]?\d",
        r"1?\d|2[0-3]|0\d",
        r"[1-9]|[12]\d|3[01]|0[1-9]|\?|L|LW|([1-9]|[12]\d|3[01])W",
        r"[1-9]|0[1-9]|1[0-2]|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC",
        r"[1-7]|SUN|MON|TUE|WED|THU|FRI|SAT|\?|L|[1-7](L|#[1-5])",
        r"19[7-9]\d|20\d\d|21\d\d",
    )
]


def _is_moment(text: str) -> bool:
    try:
        return bool(datetime.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return False


def _seconds(value: str | float) -> float:
    text = str(value)
    if re.fullmatch(r"[\d.]+", text):
        return float(text)
    moment = datetime.fromisoformat(text.replace("/", "-"))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class _Functions(functions.Functions):
    @functions.signature({"types": ["array"]})
    def _func_distinct(self, values: list[Any]) -> list[Any]:
        return list(dict.fromkeys(values))

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
    def _func_difference(self, value: float, other: float) -> float:
        return value - other

    @functions.signature({"types": ["string"]})
    def _func_schedule(self, expression: str) -> bool:
        """Return whether EventBridge accepts a rate, cron or at expression."""
        kind, _, rest = expression.removesuffix(")").partition("(")
        if kind == "at":
            return _is_moment(rest)
        fields = rest.split(" ")
        if kind == "rate":
            return len(fields) == 2 and re.fullmatch(r"[1-9]\d*", fields[0]) is not None and fields[1] in _UNITS
        # Either day of month or day of week must be `?`, but not both.
        fits = all(re.fullmatch(pattern, field) for pattern, field in zip(_CRON, fields, strict=False))
        return kind == "cron" and len(fields) == len(_CRON) and fits and (fields[2] == "?") != (fields[4] == "?")

    @functions.signature({"types": ["string"]})
    def _func_decoded_length(self, text: str) -> int:
        """Return the length of decoded base64."""
        return len(re.sub(r"[\s=]", "", text)) * 3 // 4

    @functions.signature({"types": ["string"]})
    def _func_instance_type(self, name: str) -> bool:
        return name in INSTANCE_TYPES

    @functions.signature({"types": ["string"]})
    def _func_timezone(self, name: str) -> bool:
        return name in available_timezones()

    @functions.signature({"types": ["string", "number"]}, {"types": ["string", "number"]})
    def _func_later(self, value: str | float, other: str | float) -> bool:
        """Return whether a time is at or after another. Both are ISO texts or seconds."""
        return _seconds(value) >= _seconds(other)

    @functions.signature({"types": ["number"]}, {"types": ["number"]})
    def _func_ratio(self, value: float, other: float) -> float:
        return value / other if other else 0


_OPTIONS = jmespath.Options(custom_functions=_Functions())
