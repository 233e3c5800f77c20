"""The file of `trn bench`: the workload, the sides, and the gates, which are written before the first run."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from trainium_core.evidence.record import MET, NOT_MEASURED, NOT_MET, Gate, Input, Metric, Workload
from trainium_core.evidence.statistics import FEWEST_RUNS
from trainium_core.evidence.toml_file import TomlFileError, TomlReader, parse_toml
from trainium_core.jobs.request import JobRequest, job_request, read_job_file

_KEYS = ("name", "steps", "warmup_steps", "seeds", "workload", "sides", "gates", "fidelity")
_SIDE_KEYS = ("job", "plan", "tuned", "parallelism", "accelerators_used", "results", "recovery")
_FIDELITY_KEYS = ("reference", "loss_limit", "logits", "fp32", "bf16", "logits_limit")
_WORKLOAD_KEYS = tuple(
    one.name
    for one in fields(Workload)
    if one.name not in ("name", "command", "parallelism", "steps", "warmup", "tuned")
)
_LIMIT = re.compile(r"(<=|>=) *([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_DEFAULT_LOSS_LIMIT = 0.01
_DEFAULT_LOGITS_LIMIT = 1.2
_NOT_TIMED = ("observe", "profile", "profile_device")
SEED = "{seed}"


@dataclass(frozen=True, kw_only=True)
class BenchSide:
    """One side. Paths are absolute.

    Attributes:
        job: The job file.
        plan: The cdk.json of its cluster. None: that of the command.
        used: How many accelerators the job uses. None: all of its nodes if torchrun starts it.
        results: Files in the outputs of each job that other tools wrote.
        recovery: Whether one more job runs, of which a node is terminated.
    """

    name: str
    job: Path
    plan: Path | None = None
    tuned: bool | None = None
    parallelism: str | None = None
    used: int | None = None
    results: tuple[str, ...] = ()
    recovery: bool = False


@dataclass(frozen=True, kw_only=True)
class FidelityFile:
    """The comparison with a reference.

    Attributes:
        reference: The side whose loss curves are the reference.
        loss_limit: The largest relative difference of a loss.
        logits: File in the outputs of each job, in NumPy's format .npy.
        fp32, bf16: The same logits of the reference in both precisions.
        logits_limit: The largest error, in units of the error of bf16 on the reference.
    """

    reference: str | None = None
    loss_limit: float = _DEFAULT_LOSS_LIMIT
    logits: str | None = None
    fp32: Path | None = None
    bf16: Path | None = None
    logits_limit: float = _DEFAULT_LOGITS_LIMIT


@dataclass(frozen=True, kw_only=True)
class BenchFile:
    """steps: how many of each run are counted. warmup_steps: how many are warm-up at least."""

    name: str
    steps: int
    warmup_steps: int
    seeds: tuple[int, ...]
    workload: Workload
    sides: tuple[BenchSide, ...]
    gates: Mapping[str, str]
    fidelity: FidelityFile | None
    source: Input


def read_bench_file(content: bytes, path: Path) -> BenchFile:
    """Raises TomlFileError with all mistakes."""
    try:
        document = parse_toml(content.decode())
    except UnicodeDecodeError as error:
        raise TomlFileError([f"is not TOML: {error}"]) from error
    reading = _Reading(path.parent.absolute())
    source = Input(path=path.name, sha256=sha256(content).hexdigest(), bytes=len(content))
    found = reading.file(document, source)
    if reading.problems:
        raise TomlFileError(reading.problems)
    return found


def gate_of(name: str, limit: str, metric: Metric | None) -> Gate:
    """Compare a metric with its limit."""
    value = None if metric is None else metric.value
    if value is None:
        return Gate(name=name, limit=limit, value=None, state=NOT_MEASURED)
    match = _LIMIT.fullmatch(limit)
    assert match is not None, "the file was validated"
    bound = float(match[2])
    is_met = value <= bound if match[1] == "<=" else value >= bound
    return Gate(name=name, limit=limit, value=value, state=MET if is_met else NOT_MET)


class _Reading(TomlReader):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def file(self, document: Mapping[str, Any], source: Input) -> BenchFile:
        self.only(document, _KEYS, "")
        name = self._text(document, "name", "") or ""
        if name and not _NAME.fullmatch(name):
            self.problems.append(f"name is {name!r}; use up to 40 small letters, digits and hyphens")
        seeds = document.get("seeds", list(range(1, FEWEST_RUNS + 1)))
        if not isinstance(seeds, list) or not all(type(one) is int for one in cast("list[Any]", seeds)):
            self.problems.append(f"seeds is {seeds!r}; it must be a list of whole numbers, one for each run")
            seeds = []
        elif len(set(cast("list[int]", seeds))) < max(FEWEST_RUNS, len(cast("list[int]", seeds))):
            self.problems.append(f"seeds: must have at least {FEWEST_RUNS} different numbers, one for each run")
        sides = {one: self.table(table, f"sides.{one}") for one, table in self._tables(document, "sides").items()}
        if not sides:
            self.problems.append("sides: has no tables; it needs one, or two to compare")
        gates = self._tables(document, "gates")
        for metric, limit in gates.items():
            if not isinstance(limit, str) or not _LIMIT.fullmatch(limit):
                self.problems.append(f'gates.{metric} is {limit!r}; use a limit such as "<= 0.5" or ">= 1000"')
        found = tuple(self._side(one, table) for one, table in sides.items())
        return BenchFile(
            name=name,
            steps=self._whole(document, "steps", "", least=1) or 1,
            warmup_steps=self._whole({"warmup_steps": 1, **document}, "warmup_steps", "", least=1) or 1,
            seeds=tuple(cast("list[int]", seeds)),
            workload=self._workload(name, self._tables(document, "workload")),
            sides=found,
            gates=cast("Mapping[str, str]", gates),
            fidelity=self._fidelity(document, [one.name for one in found]),
            source=source,
        )

    def _workload(self, name: str, table: Mapping[str, Any]) -> Workload:
        self.only(table, _WORKLOAD_KEYS, "workload.")
        whole = ("seq", "global_batch")
        for key, value in table.items():
            if key in _WORKLOAD_KEYS and type(value) is not (int if key in whole else str):
                self.problems.append(
                    f"workload.{key} is {value!r}; it must be {'a whole number' if key in whole else 'text'}"
                )
        known = {key: value for key, value in table.items() if key in _WORKLOAD_KEYS}
        return Workload(name=name, **known)

    def _side(self, name: str, table: Mapping[str, Any]) -> BenchSide:
        place = f"sides.{name}."
        self.only(table, _SIDE_KEYS, place)
        if not _NAME.fullmatch(name):
            self.problems.append(f"sides.{name}: use small letters, digits and hyphens for the name of a side")
        job = self._path(table, "job", place)
        if job is None and "job" not in table:
            self.problems.append(f"{place}job is missing: it names the job file of the side")
        results = table.get("results", [])
        if not isinstance(results, list) or not all(isinstance(one, str) for one in cast("list[Any]", results)):
            self.problems.append(f"{place}results is {results!r}; it must be a list of paths in the job's outputs")
            results = []
        return BenchSide(
            name=name,
            job=job or self._folder,
            plan=self._path(table, "plan", place),
            tuned=self._yes_no(table, "tuned", place),
            parallelism=self._text(table, "parallelism", place, needed=False),
            used=self._whole(table, "accelerators_used", place, least=0),
            results=tuple(cast("list[str]", results)),
            recovery=self._yes_no(table, "recovery", place) or False,
        )

    def _fidelity(self, document: Mapping[str, Any], sides: Sequence[str]) -> FidelityFile | None:
        if "fidelity" not in document:
            return None
        table = self._tables(document, "fidelity")
        self.only(table, _FIDELITY_KEYS, "fidelity.")
        reference = self._text(table, "reference", "fidelity.", needed=False)
        if reference is not None and reference not in sides:
            self.problems.append(f"fidelity.reference is {reference!r}; it must be a side: {', '.join(sides)}")
        of_logits = [key for key in ("logits", "fp32", "bf16") if key in table]
        if len(of_logits) in (1, 2):
            self.problems.append("fidelity: logits, fp32 and bf16 must be given together")
        if reference is None and not of_logits:
            self.problems.append("fidelity: give reference, or logits with fp32 and bf16")
        limits = {
            key: self._limit(table[key], f"fidelity.{key}") for key in ("loss_limit", "logits_limit") if key in table
        }
        return FidelityFile(
            reference=reference,
            logits=self._text(table, "logits", "fidelity.", needed=False),
            fp32=self._path(table, "fp32", "fidelity."),
            bf16=self._path(table, "bf16", "fidelity."),
            **limits,
        )

    def _yes_no(self, table: Mapping[str, Any], key: str, place: str) -> bool | None:
        value = table.get(key)
        if value is None or isinstance(value, bool):
            return value
        self.problems.append(f"{place}{key} is {value!r}; write true or false")
        return None

    def _limit(self, value: Any, place: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            self.problems.append(f"{place} is {value!r}; it must be a number above 0")
            return 1.0
        return float(value)

    def _path(self, table: Mapping[str, Any], key: str, place: str) -> Path | None:
        text = self._text(table, key, place, needed=False)
        if text is None:
            return None
        found = self._folder / text
        if not found.is_file():
            self.problems.append(f"{place}{key}: file {text} does not exist")
        return found

    def _text(self, table: Mapping[str, Any], key: str, place: str, *, needed: bool = True) -> str | None:
        value = table.get(key)
        if value is None and not needed:
            return None
        if not isinstance(value, str) or not value:
            self.problems.append(f"{place}{key} is {'missing' if value is None else repr(value)}; it must be text")
            return None
        return value

    def _whole(self, table: Mapping[str, Any], key: str, place: str, *, least: int) -> int | None:
        value = table.get(key)
        if value is None and place:
            return None
        if type(value) is not int or value < least:
            shown = "missing" if value is None else repr(value)
            self.problems.append(f"{place}{key} is {shown}; it must be a whole number of {least} or more")
            return None
        return value

    def _tables(self, document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        return self.table(document.get(key, {}), key)


def bench_jobs(file: BenchFile) -> dict[str, JobRequest]:
    """The request of each side, by its name, for the seed 0.

    Raises TomlFileError for jobs that cannot be measured, and JobError for mistakes in a job file.
    """
    requests = {side.name: job_request(seeded(read_job_file(side.job), 0)) for side in file.sides}
    problems = [
        f"sides.{side.name}.job: {side.job.name} has {key}, which slows the job; leave it out"
        for side in file.sides
        for key in _NOT_TIMED
        if getattr(requests[side.name], key)
    ]
    problems += [
        f"sides.{side.name}.recovery is true, and {side.job.name} has retries = 0; it must be 1 or more"
        for side in file.sides
        if side.recovery and not requests[side.name].retries
    ]
    if problems:
        raise TomlFileError(problems)
    return requests


def seeded(given: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The keys of a job file with the seed in the place of {seed}, in arguments, command and environment."""

    def put(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(SEED, str(seed))
        if isinstance(value, list | tuple):
            return [put(one) for one in cast("Sequence[Any]", value)]
        if isinstance(value, dict):
            return {name: put(one) for name, one in cast("dict[str, Any]", value).items()}
        return value

    return {
        key: put(value) if key in ("arguments", "command", "environment") else value for key, value in given.items()
    }
