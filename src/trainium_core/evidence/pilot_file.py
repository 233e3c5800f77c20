"""The file of `trn pilot`, and the steps that follow from it."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

from trainium_core.assess.rules import FAIL_ON
from trainium_core.evidence.toml_file import TomlFileError, TomlReader, is_number, parse_toml
from trainium_core.facts import DATA

Kind = Literal["read", "billed", "evidence", "end", "report"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TRAINIUM, GPU = "trainium", "gpu"
_PATHS = ("plan", "job", "bench", "observe", "code", "baseline")


@dataclass(frozen=True, kw_only=True)
class PilotFile:
    """The file of a pilot. Paths are as in the file, relative to its folder.

    Attributes:
        plan: cdk.json of the Trainium cluster.
        job: Job file of `trn run`, which each side runs; None with `bench`.
        bench: File of `trn bench`, which measures all sides while all clusters run.
        observe: Job file that the Trainium cluster runs once with `--observe`, after `job` or `bench`. Requires `code`.
        budget_usd: Budget of the pilot, all clusters together.
        hours: The deletion of a cluster begins at the latest this many hours after its deployment began.
        code: The code to assess. Default: none.
        fail_on: The lowest severity of a finding that stops the pilot, or "never".
        baseline: cdk.json of the GPU cluster. Default: no GPU cluster.
        folder: Folder for the state, the output of steps, and the evidence.
    """

    plan: str
    budget_usd: float
    hours: int
    job: str | None = None
    bench: str | None = None
    observe: str | None = None
    code: str | None = None
    fail_on: str = "stops"
    baseline: str | None = None
    folder: str = "pilot"

    @property
    def sides(self) -> Mapping[str, str]:
        """The cdk.json of each side."""
        return {TRAINIUM: self.plan} | ({GPU: self.baseline} if self.baseline else {})

    @property
    def groups(self) -> Sequence[Sequence[str]]:
        """Groups of sides that are billed at the same time: each side alone, or all together with `bench`."""
        return [list(self.sides)] if self.bench else [[side] for side in self.sides]


@dataclass(frozen=True, kw_only=True)
class PilotStep:
    """One command.

    Attributes:
        kind: What the step is for: see data/pilot_steps.toml.
        arguments: Arguments of `trn`, which may contain placeholders.
        side: The side of the step; empty for a step of all sides.
        writes: File for the standard output, in the folder of the pilot; None: not stored.
        passes: Exit codes of success.
        tries: The maximum number of runs. The command is repeated only if its exit code is 3, unknown.
        job: Name of the job whose ID replaces {job}.
        starts: Whether the command starts that job.
    """

    name: str
    kind: Kind
    arguments: tuple[str, ...]
    side: str = ""
    writes: str | None = None
    passes: tuple[int, ...] = (0,)
    tries: int = 1
    job: str = ""
    starts: bool = False

    @property
    def key(self) -> str:
        """A name that is unique in a pilot."""
        return f"{self.side} {self.name}".strip()


def read_pilot_file(text: str, folder: Path) -> PilotFile:
    """The pilot in the text of a TOML file.

    Args:
        text: The text.
        folder: The folder of the file; paths in the file are relative to it.

    Raises:
        TomlFileError: The file has mistakes. The error has all of them.
    """
    document = parse_toml(text)
    reader = TomlReader()
    known = [field.name for field in fields(PilotFile)]
    reader.only(document, known, "")
    problems = reader.problems
    problems += [f"{key} is missing" for key in ("plan", "budget_usd", "hours") if key not in document]
    if ("job" in document) == ("bench" in document):
        both = " and ".join(key for key in ("job", "bench") if key in document) or "neither job nor bench"
        problems.append(f"it has {both}; specify either job, which each side runs, or bench, which measures all sides")
    if "observe" in document and "code" not in document:
        problems.append("observe requires code: the counters of the job are compared with the findings in the code")
    for key in known:
        if key in document:
            problems += _mistakes(key, document[key], folder)
    if problems:
        raise TomlFileError(problems)
    return PilotFile(**document)


def _mistakes(key: str, value: object, folder: Path) -> Iterator[str]:
    if key == "hours":
        if not (type(value) is int and value > 0):
            yield f"hours is {value!r}; it must be a whole number of 1 or more"
    elif key == "budget_usd":
        if not (is_number(value) and cast("float", value) > 0):
            yield f"budget_usd is {value!r}; it must be an amount in US dollars above 0"
    elif not isinstance(value, str) or not value:
        yield f"{key} is {value!r}; it must be a text that is not empty"
    elif key == "fail_on" and value not in FAIL_ON:
        yield f"fail_on is {value!r}; it must be one of {', '.join(FAIL_ON)}"
    elif key in _PATHS and not (folder / value).exists():
        yield f"{key}: {folder / value} does not exist"
    elif key in ("plan", "baseline") and Path(value).name != "cdk.json":
        yield f"{key} is {value!r}; it must be a cdk.json, because the CDK CLI reads no other file"


@cache
def _rows() -> Sequence[Mapping[str, Any]]:
    return tomllib.loads((DATA / "pilot_steps.toml").read_text(encoding="utf-8"))["steps"]


def pilot_steps(pilot: PilotFile) -> tuple[PilotStep, ...]:
    """The steps of a pilot in order: free checks of all sides, then each group of sides to its end, then reports."""
    rows = [row for row in _rows() if "needs" not in row or getattr(pilot, row["needs"]) is not None]
    reads = [step for row in rows if row["kind"] == "read" for step in _side_steps(row, pilot.sides)]
    sides = [
        step
        for sides in pilot.groups
        for kinds, parts in ((("billed", "evidence"), (sides,)), (("end",), [[side] for side in sides]))
        for part in parts
        for row in rows
        if row["kind"] in kinds
        for step in _side_steps(row, part)
    ]
    reports = [step for row in rows if row["kind"] == "report" for step in _side_steps(row, pilot.sides)]
    return (*reads, *sides, *reports)


def _side_steps(row: Mapping[str, Any], sides: Sequence[str] | Mapping[str, str]) -> Iterator[PilotStep]:
    of = row.get("side", False)
    for side in [side for side in sides if of in (True, side)] if of else ("",):
        yield PilotStep(
            name=row["name"],
            kind=row["kind"],
            arguments=tuple(row["arguments"]),
            side=side,
            writes=row["writes"].format(side=side) if "writes" in row else None,
            passes=tuple(row.get("passes", (0,))),
            tries=row.get("tries", 1),
            job=row.get("job", side),
            starts=row.get("starts", False),
        )
