"""The file of `trn pilot`, and the steps that follow from it."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

from trainium_core.facts import DATA

Kind = Literal["look", "billed", "evidence", "end", "report"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TRAINIUM, GPU = "trainium", "gpu"
_PATHS = ("plan", "job", "bench", "code", "baseline")


class PilotFileError(ValueError):
    """Not a valid file. The message is a sentence without a period."""


@dataclass(frozen=True, kw_only=True)
class PilotFile:
    """What a pilot is to do. Paths are as in the file, relative to its folder.

    Attributes:
        plan: cdk.json of the Trainium cluster.
        job: Job file of `trn run`, which each side runs; None with `bench`.
        bench: File of `trn bench`, which measures all sides while all clusters run.
        budget_usd: Budget of the pilot, all clusters together.
        hours: The longest time that each cluster may be billed.
        code: What is assessed. Default: nothing.
        fail_on: The least severity of a finding that stops the pilot.
        baseline: cdk.json of the GPU cluster. Default: no baseline.
        folder: Folder for the state, the output of steps, and the evidence.
    """

    plan: str
    budget_usd: float
    hours: int
    job: str | None = None
    bench: str | None = None
    code: str | None = None
    fail_on: str = "stops"
    baseline: str | None = None
    folder: str = "pilot"

    @property
    def sides(self) -> Mapping[str, str]:
        """cdk.json by side."""
        return {TRAINIUM: self.plan} | ({GPU: self.baseline} if self.baseline else {})

    @property
    def groups(self) -> Sequence[Sequence[str]]:
        """The sides that are billed at the same time: one after the other, or all for `bench`."""
        return [list(self.sides)] if self.bench else [[side] for side in self.sides]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One command. `arguments` may contain placeholders; `key` is unique in a pilot."""

    name: str
    kind: Kind
    arguments: tuple[str, ...]
    side: str = ""
    writes: str | None = None
    passes: tuple[int, ...] = (0,)
    tries: int = 1

    @property
    def key(self) -> str:
        return f"{self.side} {self.name}".strip()


def read_pilot_file(text: str, folder: Path) -> PilotFile:
    """The pilot of a TOML file. folder: that its paths are relative to. Raises PilotFileError."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PilotFileError(f"it is not TOML: {error}") from error
    known = {field.name: field for field in fields(PilotFile)}
    for key in given:
        if key not in known:
            raise PilotFileError(f"{key} is not a key of a pilot; these are: {', '.join(known)}")
    for key in ("plan", "budget_usd", "hours"):
        if key not in given:
            raise PilotFileError(f"{key} is missing")
    if ("job" in given) == ("bench" in given):
        raise PilotFileError("give either job, which each side runs, or bench, which measures all sides")
    for key, value in given.items():
        _check(key, value)
    for key in _PATHS:
        if key in given and not (folder / given[key]).exists():
            raise PilotFileError(f"{key}: there is no {folder / given[key]}")
    for key in ("plan", "baseline"):
        if key in given and Path(given[key]).name != "cdk.json":
            raise PilotFileError(f"{key}: {given[key]} is not a cdk.json, and the CDK CLI reads no other file")
    return PilotFile(**given)


def _check(key: str, value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if key == "hours" and not (isinstance(value, int) and number and value > 0):
        raise PilotFileError(f"hours: got {value!r}, allowed is a whole number of 1 or more")
    if key == "budget_usd" and not (number and cast("float", value) > 0):
        raise PilotFileError(f"budget_usd: got {value!r}, allowed is an amount in US dollars above 0")
    if key not in ("hours", "budget_usd") and not (isinstance(value, str) and value):
        raise PilotFileError(f"{key}: got {value!r}, allowed is text")


@cache
def _rows() -> Sequence[Mapping[str, Any]]:
    return tomllib.loads((DATA / "pilot_steps.toml").read_text(encoding="utf-8"))["steps"]


def steps_of(pilot: PilotFile) -> tuple[Step, ...]:
    """The steps of a pilot in order: looks of all sides, then each group of sides to its end, then reports."""
    rows = [row for row in _rows() if "needs" not in row or getattr(pilot, row["needs"]) is not None]
    looks = [step for row in rows if row["kind"] == "look" for step in _of_sides(row, pilot.sides)]
    sides = [
        step
        for sides in pilot.groups
        for kinds, parts in ((("billed", "evidence"), (sides,)), (("end",), [[side] for side in sides]))
        for part in parts
        for row in rows
        if row["kind"] in kinds
        for step in _of_sides(row, part)
    ]
    reports = [step for row in rows if row["kind"] == "report" for step in _of_sides(row, pilot.sides)]
    return (*looks, *sides, *reports)


def _of_sides(row: Mapping[str, Any], sides: Sequence[str] | Mapping[str, str]) -> Iterator[Step]:
    for side in sides if row.get("side") else ("",):
        yield Step(
            name=row["name"],
            kind=row["kind"],
            arguments=tuple(row["arguments"]),
            side=side,
            writes=row["writes"].format(side=side) if "writes" in row else None,
            passes=tuple(row.get("passes", (0,))),
            tries=row.get("tries", 1),
        )
