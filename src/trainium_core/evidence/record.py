"""The records that `trn bench` and `trn tco` write: schema trainium-pilot/1, one JSON object each.

A record is about one side, such as the Trainium cluster. An unknown number is null with a reason, never 0.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NoReturn, cast

from trainium_core.evidence.typed_json import JsonValueError, from_json, shown
from trainium_wire.formats import moment

SCHEMA = "trainium-pilot/1"
BENCH, TCO = "bench", "tco"
KINDS = (BENCH, TCO)
TRAINIUM, GPU, CPU, LAB = "trainium", "gpu", "cpu", "lab"
SIDES = (TRAINIUM, GPU, CPU, LAB)
MEASURED, IMPORTED, QUOTED, DERIVED = "measured", "imported", "quoted", "derived"
ORIGINS = (MEASURED, IMPORTED, QUOTED, DERIVED)
MET, NOT_MET, NOT_MEASURED = "met", "not met", "not measured"
WITHIN_NOISE = "met, within the noise"
"""The value meets the limit, but its interval contains the limit."""
STATES = (MET, WITHIN_NOISE, NOT_MET, NOT_MEASURED)
FEWEST_RUNS = 3

LAB_PREFIX = "lab:"
"""Prefix of the hardware type in a record of the lab, whose nodes have the name of an AWS type but no accelerator."""

LIMIT = re.compile(r"(<=|>=) *([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)")
"""The limit of a gate, such as "<= 0.5"."""

_RECOVERY = "recovery_"
"""Prefix of the metrics that are measured once, not in each run."""

_FAMILIES: Mapping[str, tuple[str, ...]] = {TRAINIUM: ("trn", "inf"), GPU: ("p", "g")}


class RecordError(ValueError):
    """Not a valid record. The message is a sentence without a period."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """The version of trainium-cdk that wrote the record."""

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
    def machines(self) -> str:
        """Number and type of the nodes, such as "2 x trn2.48xlarge"."""
        return f"{self.nodes} x {self.type}" if self.nodes else self.type


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
    tokens: int | None = None
    step_seconds: tuple[float, ...] = ()
    fallback_ops: int | None = None
    recompiles: int | None = None
    loss: tuple[tuple[float | None, ...], ...] = ()
    excluded: str | None = None


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number with its unit, interval and origin.

    Attributes:
        n: The number of samples.
        low, high: The confidence interval at `level`; without a level, the range of the runs. `method` says how.
        method: How value and interval were computed. For a derived number, the formula.
        source, date: Of a quoted or imported number, and of the inputs of a derived number.
        why_null: Why the value is None; for a value without an interval, why the interval is missing.
    """

    value: float | None
    unit: str
    n: int | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    method: str | None = None
    origin: str | None = None
    source: str | None = None
    date: str | None = None
    why_null: str | None = None


def unknown(unit: str, why: str, *, n: int | None = None) -> Metric:
    """A metric without a value."""
    return Metric(value=None, unit=unit, n=n, why_null=why)


@dataclass(frozen=True, kw_only=True)
class Gate:
    """A limit that was set before the first run.

    Attributes:
        limit: Such as "<= 200".
        value: The value of the metric with the name of the gate; None if not measured.
        state: One of STATES.
    """

    name: str
    limit: str
    value: float | None
    state: str


def judged_gate(name: str, limit: str, metric: Metric | None) -> Gate:
    """Compare a metric with a limit that LIMIT matches."""
    match = LIMIT.fullmatch(limit)
    assert match is not None, "the limit was validated"
    if metric is None or metric.value is None:
        return Gate(name=name, limit=limit, value=None, state=NOT_MEASURED)
    bound, is_upper = float(match[2]), match[1] == "<="
    worst = metric.high if is_upper else metric.low
    met, surely_met = (
        value is None or (value <= bound if is_upper else value >= bound) for value in (metric.value, worst)
    )
    return Gate(name=name, limit=limit, value=metric.value, state=_state(met, surely_met))


def _state(met: bool, surely_met: bool) -> str:
    return NOT_MET if not met else MET if surely_met else WITHIN_NOISE


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """A comparison of results with a reference.

    Attributes:
        method: What is compared.
        reference: ID of the record that is the reference.
        value: The largest difference; None if not measured.
        limit: The largest allowed difference.
        state: MET, NOT_MET or NOT_MEASURED.
        compared: How many values were compared.
        expected: How many values the reference has. All of them are needed.
        not_finite: How many values of the side are not finite. Each of them misses the limit.
        why_null: Why the value is None.
    """

    method: str
    reference: str
    value: float | None
    limit: float
    state: str
    compared: int
    expected: int
    not_finite: int = 0
    why_null: str | None = None


def judged_fidelity(
    method: str,
    reference: str,
    value: float | None,
    limit: float,
    *,
    compared: int,
    expected: int,
    not_finite: int = 0,
    why_null: str | None = None,
) -> Fidelity:
    """Compare a difference with its limit."""
    if not_finite:
        state = NOT_MET
    elif value is None or not 0 < compared == expected:
        state = NOT_MEASURED
    else:
        state = MET if value <= limit else NOT_MET
    return Fidelity(
        method=method,
        reference=reference,
        value=value,
        limit=limit,
        state=state,
        compared=compared,
        expected=expected,
        not_finite=not_finite,
        why_null=why_null,
    )


@dataclass(frozen=True, kw_only=True)
class Comparability:
    """Whether the record can be compared with another.

    Attributes:
        against: ID of the other record.
        equal: Conditions that are met: equal, or stated by both records.
        different: Each condition that is not met, with both values or another reason. The price basis matters for cost
            only, so a record states it only in the reason of a ratio without a value.
        comparable: Whether all conditions are met.
        ratios: The metrics of this record divided by those of the other, by name.
    """

    against: str
    equal: tuple[str, ...]
    different: tuple[str, ...]
    comparable: bool
    ratios: Mapping[str, Metric] = field(default_factory=dict[str, Metric])

    @property
    def verdict(self) -> str:
        """`comparable`, or `not comparable` with the differences, for people."""
        return f"not comparable: {', '.join(self.different)}" if self.different else "comparable"


@dataclass(frozen=True, kw_only=True)
class Input:
    """A file on which the record is based, such as the file with the gates."""

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Record:
    """The measurements of one side, or its costs of twelve months.

    Attributes:
        kind: BENCH or TCO.
        made: When the record was written, as an ISO time.
        side: The kind of hardware: TRAINIUM, GPU, CPU or LAB.
        inputs: Files on which the record is based, such as the file with the gates.

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
        raise RecordError(f"not a record: it is not JSON, or was truncated: {error}") from error
    document = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    schema = document.pop("schema", None)
    if schema != SCHEMA:
        raise RecordError(f"not a record: its schema is {shown(schema)}, not {SCHEMA!r}")
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
        for problem in _metric_problems(metric):
            yield f"metrics.{name}: {problem}"
    for compared in record.comparable:
        yield from _comparability_problems(compared)
    counted = sum(run.excluded is None for run in record.runs)
    for name, metric in record.metrics.items():
        for problem in _measurement_problems(name, metric, counted) if record.kind == BENCH else ():
            yield f"metrics.{name}: {problem}"
    for gate in record.gates:
        yield from _gate_problems(gate, record)
    for check in record.fidelity:
        yield from _fidelity_problems(check, record)


def _measurement_problems(name: str, metric: Metric, counted: int) -> Iterator[str]:
    """The problems of a number that was measured in the runs, of which `counted` count."""
    if metric.value is None:
        return
    if name.endswith("_per_second") and not (metric.value > 0 and metric.unit.endswith("/s")):
        yield f"a rate must be above 0 and per second, got {metric.value} {metric.unit}"
    if "usd_per_" in name and not (metric.value >= 0 and metric.unit.startswith("USD")):
        yield f"a cost must be 0 USD or more, got {metric.value} {metric.unit}"
    if not name.startswith(_RECOVERY) and not metric.n == counted >= FEWEST_RUNS:
        yield f"n is {metric.n}, and {counted} runs count: n must be their number, and at least {FEWEST_RUNS}"


def _gate_problems(gate: Gate, record: Record) -> Iterator[str]:
    if not LIMIT.fullmatch(gate.limit):
        yield f"gate {gate.name}: the limit is {shown(gate.limit)}, not such as '<= 0.5' or '>= 1000'"
        return
    judged = judged_gate(gate.name, gate.limit, record.metrics.get(gate.name))
    if gate != judged:
        claim, fact = (f"{gate.value}, {gate.state!r}" for gate in (gate, judged))
        yield f"gate {gate.name} is {claim}, but its metric and limit give {fact}"


def _fidelity_problems(check: Fidelity, record: Record) -> Iterator[str]:
    if check.reference == record.id:
        yield f"{check.method}: the record is compared with itself"
    values = (check.value, check.limit)
    if any(value is not None and not 0 <= value < math.inf for value in values):
        numbers = f"{check.value} and {check.limit}"
        yield f"{check.method}: value and limit must be finite numbers of 0 or more, got {numbers}"
        return
    if not 0 <= check.compared <= check.expected or check.not_finite < 0:
        yield f"{check.method}: {check.compared} of {check.expected} values cannot have been compared"
    if (check.value is None) != bool(check.why_null):
        yield f"{check.method}: a value that is null, and no other, needs a reason in why_null"
    judged = judged_fidelity(
        check.method,
        check.reference,
        check.value,
        check.limit,
        compared=check.compared,
        expected=check.expected,
        not_finite=check.not_finite,
        why_null=check.why_null,
    )
    if check.state != judged.state:
        yield f"{check.method}: state is {shown(check.state)}, but value, limit and counts give {judged.state!r}"


def _side_problems(record: Record) -> Iterator[str]:
    """The hardware type determines the side, so a number of the lab never appears as another side's."""
    kind = record.hardware.type
    if kind.startswith(LAB_PREFIX) != (record.side == LAB):
        of_lab = f"only types of the lab begin with {LAB_PREFIX}"
        yield f"side is {record.side}, and hardware.type is {shown(kind)}: {of_lab}"
    families = _FAMILIES.get(record.side)
    if families is not None and not kind.startswith(families):
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
            yield f"{place}: the ratio {name} has a value, but the records are {compared.verdict}"
        for problem in _metric_problems(ratio):
            yield f"{place}: ratio {name}: {problem}"


def _metric_problems(metric: Metric) -> Iterator[str]:
    numbers = (metric.value, metric.low, metric.high, metric.level)
    if any(number is not None and not math.isfinite(number) for number in numbers):
        yield "a number is not finite"
        return
    if metric.value is None:
        if not metric.why_null:
            yield "the value is null without a reason in why_null"
        if metric.low is not None or metric.high is not None:
            yield "an interval without a value"
        return
    if metric.origin not in ORIGINS:
        yield f"origin is {shown(metric.origin)}, not one of {', '.join(ORIGINS)}"
    if metric.origin == QUOTED and not (metric.source and metric.date):
        yield "a quoted number needs source and date"
    if metric.origin == IMPORTED and not metric.source:
        yield "an imported number needs its source"
    if metric.origin == DERIVED and not metric.method:
        yield "a derived number needs its formula in method"
    ends = (metric.low, metric.high)
    if (None in ends) != (ends == (None, None)) or (metric.level is not None and None in ends):
        yield "an interval needs low and high"
    elif metric.low is not None and metric.high is not None and metric.low > metric.high:
        yield f"low {metric.low} is more than high {metric.high}"
    elif metric.low is not None and metric.high is not None and not metric.low <= metric.value <= metric.high:
        yield f"the value {metric.value} is outside of its interval, {metric.low} to {metric.high}"
