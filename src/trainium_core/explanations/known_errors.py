"""Known errors with cause and fix, from data/errors.toml and data/neuron_errors.toml, and quotas by their codes."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from math import log
from typing import Any, cast

from trainium_core.facts import DATA, facts

CAUSE, CONSEQUENCE, WARNING = "cause", "consequence", "warning"
_FILES = ("neuron_errors.toml", "errors.toml")
_TRACEBACK = "Traceback (most recent call last):"
_PREFIX = re.compile(r"^(\[rank ?\d+\]:? ?|\[trn\] |\S+ \| )+")
_LONGEST_LINE = 2000
_NUMBER = re.compile(r"\d+")
_NUMBERS_MATTER = re.compile(r"stat|err|sig|exit|NCC_|L-\d", re.IGNORECASE)
_MAX_FORMS = 10_000
_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True, kw_only=True)
class KnownError:
    """An error with its cause and fix.

    Attributes:
        pattern: A regular expression for a line with the error.
        source: The evidence, as of `date`, at `url`.
        kind: CAUSE, CONSEQUENCE of another failure, or WARNING, which does not end the program.
        rules: The rules of `trn assess` that predict it.
    """

    name: str
    pattern: str
    cause: str
    fix: str
    source: str
    date: date
    url: str = ""
    kind: str = CAUSE
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """An error in a text.

    Attributes:
        line: The number of the line, from 1.
        text: The line, without the prefix of a rank or of `trn`.
        unknown: An earlier exception that is not a known error; empty if there is none.
    """

    error: KnownError
    line: int
    text: str
    unknown: str = ""

    @property
    def cause(self) -> str:
        """The cause. For a consequence or a warning, it states that the cause is unknown."""
        return self.error.cause if self.error.kind == CAUSE else f"unknown; its symptom: {self.error.cause}"


@cache
def known_errors() -> Sequence[KnownError]:
    """All known errors. If several match a line, the first one counts."""
    return tuple(error for file in _FILES for error in _read(file))


def _read(file: str) -> Iterator[KnownError]:
    raw = tomllib.loads((DATA / file).read_text(encoding="utf-8"))
    sources: Mapping[str, Mapping[str, Any]] = raw.get("sources", {})
    for row in raw["error"]:
        if source := sources.get(row["source"]):
            row |= {"source": source["title"], "url": source["url"], "date": source["date"]}
        yield KnownError(**{**row, "rules": tuple(row.get("rules", ()))})


def _quota_errors() -> Iterator[KnownError]:
    """An error for the code of each quota in the facts: a code that is not there is unknown, not guessed."""
    for key, section in facts().items():
        fix = (
            "run `trn quota`: it shows the value and what counts; `trn quota request` requests an increase"
            if key == "quotas"
            else "run `trn preflight`: it shows the value and what counts; request an increase in Service Quotas"
        )
        for code, name in _coded(section):
            yield KnownError(
                name=f"quota {code}: {name}",
                pattern=rf"{code}\b",
                cause=f"the quota {name} is lower than what the request needs; in a new account it may be 0",
                fix=fix,
                source=section["source"],
                date=section["date"],
            )


def _coded(rows: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Code and name of each quota in nested rows."""
    if "code" in rows and "name" in rows:
        yield rows["code"], rows["name"]
    for name, code in rows.get("codes", {}).items():
        yield code, name
    for row in rows.values():
        if isinstance(row, dict):
            yield from _coded(cast("Mapping[str, Any]", row))


@cache
def _patterns() -> Sequence[tuple[KnownError, re.Pattern[str]]]:
    return tuple((error, re.compile(error.pattern)) for error in (*_quota_errors(), *known_errors()))


def nearest_errors(text: str, most: int = 3) -> Sequence[KnownError]:
    """The errors that share the rarest words with a text, best first. Empty if none shares a word."""
    words = {error: {*_WORD.findall(f"{error.name} {error.pattern} {error.cause}".lower())} for error in known_errors()}
    uses = Counter(word for of_error in words.values() for word in of_error)
    wanted = {*_WORD.findall(text.lower())}
    scores = {
        error: sum(log(len(words) / uses[word]) for word in wanted & of_error) for error, of_error in words.items()
    }
    return [error for error in sorted(scores, key=lambda error: -scores[error])[:most] if scores[error] > 0]


def known_error(text: str) -> KnownError | None:
    """The error that explains a text; None if no error matches."""
    explanation = explain_log(text.splitlines())
    return explanation.error if explanation else None


def explain_log(lines: Iterable[str]) -> Explanation | None:
    """The explanation of a log: the first cause, else the first consequence, else the first warning.

    None if no line matches.
    """
    first: dict[str, Explanation] = {}
    exceptions = _Exceptions()
    search = _Search()
    for number, raw in enumerate(lines, start=1):
        line = _PREFIX.sub("", raw[:_LONGEST_LINE]).rstrip()
        exceptions.feed(line)
        error = search.known(line)
        if error is None:
            exceptions.keep_unknown()
        elif error.kind not in first:
            first[error.kind] = Explanation(error=error, line=number, text=line.strip(), unknown=exceptions.unknown)
            if error.kind == CAUSE:
                break
    return next((first[kind] for kind in (CAUSE, CONSEQUENCE, WARNING) if kind in first), None)


class _Search:
    """Searches lines for known errors.

    Skips a line that equals an earlier line without an error, or differs only in numbers that do not matter.
    """

    def __init__(self) -> None:
        self._unknown = set[str]()

    def known(self, line: str) -> KnownError | None:
        form = line if _NUMBERS_MATTER.search(line) else _NUMBER.sub("0", line)
        if form in self._unknown:
            return None
        error = next((error for error, pattern in _patterns() if pattern.search(line)), None)
        if error is None and len(self._unknown) < _MAX_FORMS:
            self._unknown.add(form)
        return error


class _Exceptions:
    """The first exception in a log that is not a known error, by the last line of its traceback."""

    def __init__(self) -> None:
        self.unknown = ""
        self._is_open = False
        self._last = ""

    def feed(self, line: str) -> None:
        self._last = ""
        if line == _TRACEBACK:
            self._is_open = True
        elif self._is_open and line and not line.startswith(" "):
            self._is_open = False
            self._last = line

    def keep_unknown(self) -> None:
        """Keep the exception that the line of the last `feed` names, if any, unless there is an earlier one."""
        self.unknown = self.unknown or self._last
