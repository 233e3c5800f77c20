"""The records that `trn bench` and `trn tco` write: schema trainium-pilot/1, one JSON object each.

A record is about one side, such as the Trainium cluster. An unknown number is null with a reason, never 0.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NoReturn, cast

from trainium_core.evidence.gates import Fidelity, Gate, fidelity_problems, gate_problems
from trainium_core.evidence.metric import Metric, measurement_problems, metric_problems
from trainium_core.evidence.typed_json import JsonValueError, from_json, shown
from trainium_wire.formats import moment

SCHEMA = "trainium-pilot/1"
BENCH, TCO = "bench", "tco"
KINDS = (BENCH, TCO)
TRAINIUM, GPU, CPU, LAB = "trainium", "gpu", "cpu", "lab"
SIDES = (TRAINIUM, GPU, CPU, LAB)

LAB_PREFIX = "lab:"
"""Prefix of the hardware type in a record of the lab, whose nodes have the name of an AWS type but no accelerator."""

RECORD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""The ID of a record that is the name of its file."""

_TRAINIUM_TYPES = ("trn", "inf")


class RecordError(ValueError):
    """Not a valid record. The message is a sentence without a period."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """The version of trainium-cdk that wrote the results file."""

    version: str


@dataclass(frozen=True, kw_only=True)
class BenchWorkload:
    """The workload of the runs. None: not stated.

    Attributes:
        dataset_sha256: Digest, or another name that changes with the data.
        seq: Tokens per sequence.
        global_batch: Sequences per step, over all processes.
        steps: The number of counted steps, after the warm-up.
        warmup: The rule that ends the warm-up.
        tuned: Whether the batch size was tuned for this side.
    """

    name: str
    command: str | None = None
    model: str | None = None
    config_sha256: str | None = None
    tokenizer_sha256: str | None = None
    dataset_sha256: str | None = None
    seq: int | None = None
    global_batch: int | None = None
    precision: str | None = None
    optimizer: str | None = None
    parallelism: str | None = None
    steps: int | None = None
    warmup: str | None = None
    tuned: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """The hardware of a run. None: not stated.

    Attributes:
        accelerators: Accelerators of all nodes.
        used: The number of accelerators that the workload used.
        purchase: The purchase option, such as on-demand.
        usd_hour: Price of all nodes per hour.
    """

    type: str
    nodes: int | None = None
    accelerators: int | None = None
    used: int | None = None
    region: str | None = None
    purchase: str | None = None
    usd_hour: float | None = None
    price_source: str | None = None
    price_date: str | None = None

    @property
    def has_trainium_type(self) -> bool:
        """Whether the type is one of Trainium, also in the lab."""
        return self.type.removeprefix(LAB_PREFIX).startswith(_TRAINIUM_TYPES)

    @property
    def machine(self) -> str:
        """The type for people, such as "trn2.48xlarge", or "stand-in for trn2.48xlarge" in the lab."""
        aws_type = self.type.removeprefix(LAB_PREFIX)
        return f"stand-in for {aws_type}" if aws_type != self.type else aws_type

    @property
    def machines(self) -> str:
        """Number and type of the nodes, such as "2 x trn2.48xlarge"."""
        return f"{self.nodes} x {self.machine}" if self.nodes else self.machine


@dataclass(frozen=True, kw_only=True)
class Software:
    """The versions of the software. None: unknown.

    Attributes:
        stack: The software stack that the job states.
        environment: The virtual environment in which the nodes were verified; its name has the framework's version.
    """

    stack: str | None = None
    torch: str | None = None
    environment: str | None = None
    compiler: str | None = None
    driver: str | None = None
    runtime: str | None = None
    git_commit: str | None = None
    git_dirty: bool | None = None


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """One run of the workload.

    Attributes:
        job: ID of the job; None for a run of another tool.
        phases: Seconds by name, such as compile_cold; None: unknown.
        steps: Counted steps, after the warm-up.
        last_step: The number of the last counted step.
        tokens: Tokens in these steps.
        step_seconds: Seconds of each of the first counted steps, at most 10,000; empty if they are unknown.
        fallback_ops: Operator calls that ran on the CPU, of the process of node 0 with the most. None: unknown.
        recompiles: Cache entries compiled after the first step, on node 0. None: unknown.
        loss: Pairs of step and loss. The loss is None if the job printed one that is not finite.
        excluded: Why the metrics exclude the run; None: they include it.
    """

    job: str | None = None
    attempt: int | None = None
    seed: int | None = None
    phases: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])
    steps: int | None = None
    last_step: int | None = None
    tokens: int | None = None
    step_seconds: tuple[float, ...] = ()
    fallback_ops: int | None = None
    recompiles: int | None = None
    loss: tuple[tuple[float | None, ...], ...] = ()
    excluded: str | None = None


@dataclass(frozen=True, kw_only=True)
class Comparability:
    """Whether the results can be compared with those of another file.

    Attributes:
        against: ID of the other results file.
        equal: Conditions that are met: equal, or stated by both results files.
        different: Each condition that is not met, with both values or another reason. The price basis matters for cost
            only, so it is stated only in the reason of a ratio without a value.
        comparable: Whether all conditions are met.
        best_of_each: What each side chose for itself and what differs, such as the precision. Such results are
            comparable as the best of each side.
        ratios: The metrics of this file divided by those of the other, by name.
    """

    against: str
    equal: tuple[str, ...]
    different: tuple[str, ...]
    comparable: bool
    best_of_each: tuple[str, ...] = ()
    ratios: Mapping[str, Metric] = field(default_factory=dict[str, Metric])

    @property
    def verdict(self) -> str:
        """`comparable`, also as the best of each side, or `not comparable`, with the differences, for people."""
        if self.different:
            return f"not comparable: {', '.join(self.different)}"
        own = ", ".join(self.best_of_each)
        return f"comparable as the best of each side: {own}" if own else "comparable"


@dataclass(frozen=True, kw_only=True)
class Input:
    """A file on which the results are based, such as the file with the gates."""

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Record:
    """The measurements of one side, or its costs of twelve months.

    Attributes:
        kind: Whether the file has measurements, or costs of twelve months.
        made: When the file was written, as an ISO time.
        side: The kind of hardware.
        inputs: Files on which the results are based, such as the file with the gates.

    Raises:
        RecordError: Values contradict each other.
    """

    kind: str
    id: str
    made: str
    tool: Tool
    side: str
    workload: BenchWorkload
    hardware: Hardware
    software: Software = Software()
    runs: tuple[RecordedRun, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict[str, Metric])
    gates: tuple[Gate, ...] = ()
    fidelity: tuple[Fidelity, ...] = ()
    comparable: tuple[Comparability, ...] = ()
    inputs: tuple[Input, ...] = ()
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for problem in _contradictions(self):
            raise RecordError(problem)


def record_text(record: Record) -> str:
    """The record as JSON."""
    return json.dumps({"schema": SCHEMA, **asdict(record)}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_record(text: str | bytes) -> Record:
    """Parse a record.

    Raises:
        RecordError: The text is not a valid record.
    """
    try:
        raw = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not a results file: it is not JSON, or was truncated: {error}") from error
    document = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    schema = document.pop("schema", None)
    if schema != SCHEMA:
        raise RecordError(f"not a results file: its schema is {shown(schema)}, not {SCHEMA!r}")
    try:
        return from_json(document, Record, schema=SCHEMA)
    except JsonValueError as error:
        raise RecordError(str(error)) from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it has the number {name}")


def _contradictions(record: Record) -> Iterator[str]:
    for name, value, allowed in (("kind", record.kind, KINDS), ("side", record.side, SIDES)):
        if value not in allowed:
            yield f"{name} is {shown(value)}, not one of {', '.join(allowed)}"
    if not record.id:
        yield "id is empty"
    if moment(record.made) is None:
        yield f"made is {shown(record.made)}, not a time such as 2026-11-24T12:00:00Z"
    yield from _side_problems(record)
    for name, metric in record.metrics.items():
        for problem in metric_problems(metric):
            yield f"metrics.{name}: {problem}"
    for compared in record.comparable:
        yield from _comparability_problems(compared)
    counted = [run.job for run in record.runs if run.excluded is None]
    for job in {job for job in counted if job and counted.count(job) > 1}:
        yield f"{counted.count(job)} runs that count have the same job, {job}"
    for at, run in enumerate(record.runs):
        yield from _run_problems(run, f"runs[{at}]")
    for name, metric in record.metrics.items():
        for problem in measurement_problems(name, metric, len(counted)) if record.kind == BENCH else ():
            yield f"metrics.{name}: {problem}"
    for gate in record.gates:
        yield from gate_problems(gate, record.metrics.get(gate.name))
    for check in record.fidelity:
        if check.reference == record.id:
            yield f"{check.method}: the results are compared with themselves"
        yield from fidelity_problems(check)


def _run_problems(run: RecordedRun, place: str) -> Iterator[str]:
    for at, pair in enumerate(run.loss):
        if len(pair) != 2 or pair[0] is None or not pair[0].is_integer():
            yield f"{place}.loss[{at}] is {shown(list(pair))}, not a step and its loss"
    if run.last_step is not None and not 0 < (run.steps or 0) <= run.last_step:
        yield f"{place}: {run.steps} counted steps cannot end at step {run.last_step}"


def _side_problems(record: Record) -> Iterator[str]:
    """The hardware type determines the side, so a number of the lab never appears as another side's."""
    kind = record.hardware.type
    if kind.startswith(LAB_PREFIX) != (record.side == LAB):
        of_lab = f"only types of the lab begin with {LAB_PREFIX}"
        yield f"side is {record.side}, and hardware.type is {shown(kind)}: {of_lab}"
    if record.side != LAB and (record.side == TRAINIUM) != record.hardware.has_trainium_type:
        yield f"side is {record.side}, and hardware.type is {shown(kind)}, which is not of this side"
    used, accelerators = record.hardware.used, record.hardware.accelerators
    if record.side != LAB and used is not None and accelerators is not None and used > accelerators:
        yield f"hardware.used is {used}, more than the {accelerators} accelerators of all nodes"
    for compared in record.comparable:
        if record.side == LAB and compared.comparable:
            yield f"side is {LAB}: it cannot be comparable with {compared.against}"


def _comparability_problems(compared: Comparability) -> Iterator[str]:
    place = f"comparable with {compared.against}"
    if compared.comparable == bool(compared.different):
        yield f"{place}: comparable is {str(compared.comparable).lower()}, which contradicts the differences"
    for name, ratio in compared.ratios.items():
        if ratio.value is not None and not compared.comparable:
            yield f"{place}: the ratio {name} has a value, but the results are {compared.verdict}"
        for problem in metric_problems(ratio):
            yield f"{place}: ratio {name}: {problem}"
