"""The file of `trn bench`: workload, sides, gates and comparison with a reference, all written before the first run."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from trainium_core.evidence.gates import LIMIT
from trainium_core.evidence.loss_curves import reference_problems
from trainium_core.evidence.metric import FEWEST_RUNS
from trainium_core.evidence.record import BENCH, RECORD_ID, BenchWorkload, Input, Record, RecordError, read_record
from trainium_core.evidence.steps import warmup_rule
from trainium_core.evidence.toml_file import TomlFileError, TomlReader, is_number, parse_toml
from trainium_core.jobs.request import JobRequest, job_request, read_job_file

_KEYS = ("name", "steps", "warmup_steps", "seeds", "workload", "sides", "gates", "fidelity")
_SIDE_KEYS = ("job", "plan", "tuned", "precision", "parallelism", "accelerators_used", "results", "recovery")
_FIDELITY_KEYS = ("reference", "loss_limit", "scores")
_WORKLOAD_KEYS = tuple(
    field.name
    for field in fields(BenchWorkload)
    if field.name not in ("name", "command", "parallelism", "steps", "warmup", "tuned")
)
_SAME_AS_REFERENCE = ("name", "model", "dataset_sha256")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_NAME_RULE = "up to 40 lowercase letters, digits and hyphens, beginning with a letter or digit"
_DEFAULT_LOSS_LIMIT = 0.01
_SLOW_OPTIONS = ("observe", "profile", "profile_device")
SEED = "{seed}"


@dataclass(frozen=True, kw_only=True)
class BenchSide:
    """One side, such as the Trainium cluster. Paths are absolute.

    Attributes:
        job: The job file.
        plan: The cdk.json of the side's cluster. None: the plan that the command is run with.
        tuned: Whether the batch size was tuned for this side. None: not stated.
        precision: The precision of this side. None: that of the workload.
        parallelism: How the model is distributed.
        used: How many accelerators the job uses. None: all accelerators of its nodes if torchrun starts the job, else
            unknown.
        results: Names of other tools' result files in the outputs of each job.
        recovery: Whether one more job runs, and one of its nodes is terminated.
    """

    name: str
    job: Path
    plan: Path | None = None
    tuned: bool | None = None
    precision: str | None = None
    parallelism: str | None = None
    used: int | None = None
    results: tuple[str, ...] = ()
    recovery: bool = False


@dataclass(frozen=True, kw_only=True)
class FidelityFile:
    """The table [fidelity]: the comparison with a reference.

    Attributes:
        reference: The side whose results are the reference, or the ID of `imported`.
        loss_limit: The largest allowed relative difference of a loss. None: losses are not compared.
        scores: The largest allowed difference of a metric, by its name.
        imported: The results file that is the reference. None: it is a side.
    """

    reference: str
    loss_limit: float | None
    scores: Mapping[str, float]
    imported: Record | None = None


@dataclass(frozen=True, kw_only=True)
class BenchFile:
    """The content of the file.

    Attributes:
        steps: The minimum number of counted steps of each run.
        warmup_steps: The minimum number of warm-up steps.
        seeds: One seed for each run of a side.
        gates: Limits by metric.
        source: Name, digest and size of the file.
    """

    name: str
    steps: int
    warmup_steps: int
    seeds: tuple[int, ...]
    workload: BenchWorkload
    sides: tuple[BenchSide, ...]
    gates: Mapping[str, str]
    fidelity: FidelityFile | None
    source: Input

    @property
    def measured_workload(self) -> BenchWorkload:
        """The workload with its measured steps and the rule of the warm-up."""
        return replace(self.workload, steps=self.steps, warmup=warmup_rule(self.warmup_steps))

    @property
    def digest(self) -> str:
        """The SHA-256 of the file, and of the numbers of an imported reference."""
        if self.fidelity is None or self.fidelity.imported is None:
            return self.source.sha256
        record = asdict(self.fidelity.imported)
        return sha256(json.dumps([self.source.sha256, record["runs"], record["metrics"]]).encode()).hexdigest()


def read_bench_file(content: bytes, path: Path) -> BenchFile:
    """Parse the content of a file.

    Args:
        content: The content.
        path: Path of the file. Paths in the file are relative to its folder.

    Raises:
        TomlFileError: The file has mistakes. The error has all of them.
    """
    try:
        document = parse_toml(content.decode())
    except UnicodeDecodeError as error:
        raise TomlFileError([f"the file is not TOML: {error}"]) from error
    reading = _Reading(path.parent.absolute())
    source = Input(path=path.name, sha256=sha256(content).hexdigest(), bytes=len(content))
    file = reading.file(document, source)
    if reading.problems:
        raise TomlFileError(reading.problems)
    return file


class _Reading(TomlReader):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def file(self, document: Mapping[str, Any], source: Input) -> BenchFile:
        self.only(document, _KEYS, "")
        name = self.text(document, "name", "", required=True) or ""
        if name and not _NAME.fullmatch(name):
            self.problems.append(f"name is {name!r}; use {_NAME_RULE}")
        seeds = self.value(
            {"seeds": list(range(1, FEWEST_RUNS + 1)), **document},
            "seeds",
            "",
            lambda value: _is_uniform_list(int, value) and len({*value}) == len(value) >= FEWEST_RUNS,
            f"a list of at least {FEWEST_RUNS} different whole numbers, one for each run",
        )
        sides = self.table(document, "sides", "")
        if not sides:
            self.problems.append("sides has no tables; it needs one, or several to compare")
        workload = self._workload(name, self.table(document, "workload", ""))
        gates = self.table(document, "gates", "")
        for metric, limit in gates.items():
            if not isinstance(limit, str) or not LIMIT.fullmatch(limit):
                self.problems.append(f'gates.{metric} is {limit!r}; use a limit such as "<= 0.5" or ">= 1000"')
        file = BenchFile(
            name=name,
            steps=self._whole(document, "steps", "", least=1, required=True) or 1,
            warmup_steps=self._whole({"warmup_steps": 1, **document}, "warmup_steps", "", least=1) or 1,
            seeds=tuple(seeds or ()),
            workload=workload,
            sides=tuple(self._side(side, self.table(sides, side, "sides.")) for side in sides),
            gates=gates,
            fidelity=self._fidelity(document, list(sides), workload),
            source=source,
        )
        if file.fidelity is not None and file.fidelity.imported is not None:
            self.problems += _lacking(file.fidelity.imported, file.fidelity, file)
        return file

    def _workload(self, name: str, table: Mapping[str, Any]) -> BenchWorkload:
        self.only(table, _WORKLOAD_KEYS, "workload.")
        known = {
            key: self._whole(table, key, "workload.", least=0)
            if key in ("seq", "global_batch")
            else self.text(table, key, "workload.")
            for key in _WORKLOAD_KEYS
        }
        return BenchWorkload(name=name, **known)

    def _side(self, name: str, table: Mapping[str, Any]) -> BenchSide:
        place = f"sides.{name}."
        self.only(table, _SIDE_KEYS, place)
        if not _NAME.fullmatch(name):
            self.problems.append(f"sides.{name}: use {_NAME_RULE} for the name of a side")
        results = self.value(
            table, "results", place, lambda value: _is_uniform_list(str, value), "a list of paths in the job's outputs"
        )
        return BenchSide(
            name=name,
            job=self._path(table, "job", place, required=True) or self._folder,
            plan=self._path(table, "plan", place),
            tuned=self._yes_no(table, "tuned", place),
            precision=self.text(table, "precision", place),
            parallelism=self.text(table, "parallelism", place),
            used=self._whole(table, "accelerators_used", place, least=0),
            results=tuple(results or ()),
            recovery=self._yes_no(table, "recovery", place) or False,
        )

    def _fidelity(
        self, document: Mapping[str, Any], sides: Sequence[str], workload: BenchWorkload
    ) -> FidelityFile | None:
        if "fidelity" not in document:
            return None
        table, place = self.table(document, "fidelity", ""), "fidelity."
        self.only(table, _FIDELITY_KEYS, place)
        reference = self.text(table, "reference", place, required=True)
        imported = self._reference(reference, sides, workload) if reference and reference not in sides else None
        scores = self.table(table, "scores", place)
        limits = {name: self._limit(scores, name, f"{place}scores.") for name in scores}
        default = {} if scores else {"loss_limit": _DEFAULT_LOSS_LIMIT}
        return FidelityFile(
            reference=imported.id if imported else reference or "",
            loss_limit=self._limit({**default, **table}, "loss_limit", place),
            scores=limits,
            imported=imported,
        )

    def _reference(self, path: str, sides: Sequence[str], workload: BenchWorkload) -> Record | None:
        """The results file of the same workload that is the reference; None if it is not valid."""
        place = f"fidelity.reference is {path!r}"
        if not path.endswith(".json"):
            known = ", ".join(sides)
            self.problems.append(
                f"{place}; it must be a side ({known}) or the path of a results file, such as gpu.json"
            )
            return None
        try:
            record = read_record((self._folder / path).read_bytes())
        except (OSError, RecordError) as error:
            self.problems.append(f"{place}: {error}")
            return None
        if not RECORD_ID.fullmatch(record.id):
            self.problems.append(f"{place}; its id is {record.id!r}, which is not the name of a file")
        if record.kind != BENCH or record.id in (f"{workload.name}-{side}" for side in sides):
            self.problems.append(f"{place}; it must have measurements, and not be the results file of a side")
        for key in _SAME_AS_REFERENCE:
            theirs, ours = getattr(record.workload, key), getattr(workload, key)
            if None not in (theirs, ours) and theirs != ours:
                self.problems.append(f"{place}; its {key} is {theirs}, and that of this workload is {ours}")
        return record

    def _limit(self, table: Mapping[str, Any], key: str, place: str) -> Any:
        return self.value(table, key, place, lambda value: is_number(value) and value > 0, "a number above 0")

    def _yes_no(self, table: Mapping[str, Any], key: str, place: str) -> Any:
        return self.value(table, key, place, lambda value: isinstance(value, bool), "true or false")

    def _whole(self, table: Mapping[str, Any], key: str, place: str, *, least: int, required: bool = False) -> Any:
        expected = f"a whole number of {least} or more"
        return self.value(
            table, key, place, lambda value: type(value) is int and value >= least, expected, required=required
        )

    def _path(self, table: Mapping[str, Any], key: str, place: str, *, required: bool = False) -> Path | None:
        text = self.text(table, key, place, required=required)
        if text is None:
            return None
        if not (self._folder / text).is_file():
            self.problems.append(f"{place}{key} is {text!r}; it must be a file that exists")
        return self._folder / text


def _lacking(reference: Record, fidelity: FidelityFile, file: BenchFile) -> Iterator[str]:
    """What an imported reference lacks of what is compared."""
    for name in fidelity.scores:
        if name not in reference.metrics or reference.metrics[name].value is None:
            yield f"fidelity.scores: {reference.id} has no {name}"
    if fidelity.loss_limit is not None:
        for problem in reference_problems(reference.runs, file.measured_workload, file.seeds):
            yield f"fidelity.reference: {reference.id}: {problem}"


def _is_uniform_list(kind: type[Any], value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is kind for item in cast("list[Any]", value))


def bench_jobs(file: BenchFile) -> dict[str, JobRequest]:
    """The job request of each side, with the seed 0, by the name of the side.

    Raises:
        TomlFileError: A job has an option that slows it, or a job of a side with `recovery` has no retries.
        JobError: A job file has a mistake.
    """
    requests = {side.name: job_request(seeded(read_job_file(side.job), 0)) for side in file.sides}
    problems = [
        f"sides.{side.name}.job: {side.job.name} has {key}, which slows the job; remove it"
        for side in file.sides
        for key in _SLOW_OPTIONS
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


def seeded(job_file: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """A copy of a job file in which the seed replaces {seed} in arguments, command and environment."""

    def replaced(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(SEED, str(seed))
        if isinstance(value, list | tuple):
            return [replaced(item) for item in cast("Sequence[Any]", value)]
        if isinstance(value, dict):
            return {name: replaced(item) for name, item in cast("dict[str, Any]", value).items()}
        return value

    return {
        key: replaced(value) if key in ("arguments", "command", "environment") else value
        for key, value in job_file.items()
    }
