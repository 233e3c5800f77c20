"""Gates and tolerances of a record: limits of its metrics, and of the difference of its results from a reference."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainium_core.evidence.metric import QUOTED, Metric, is_event
from trainium_core.evidence.typed_json import shown

MET, NOT_MET, NOT_MEASURED = "met", "not met", "not measured"
WITHIN_NOISE = "met, within the noise"
"""The value meets the limit, but its interval contains the limit, or it has no interval."""
MET_ONCE = "met, one event"
"""The one event that was measured meets the limit, such as the one recovery of `trn bench`. It has no interval."""
STATES = (MET, MET_ONCE, WITHIN_NOISE, NOT_MET, NOT_MEASURED)

LIMIT = re.compile(r"(<=|>=) *([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)")
"""The limit of a gate, such as "<= 0.5"."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """A limit that was set before the first run.

    Attributes:
        limit: Such as "<= 200".
        value: The value of the metric with the name of the gate; None if not measured.
        state: What value and limit give.
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
        value is not None and (value <= bound if is_upper else value >= bound) for value in (metric.value, worst)
    )
    state = NOT_MET
    if met:
        is_one_event = worst is None and metric.n == 1 and is_event(name)
        state = MET if surely_met else MET_ONCE if is_one_event else WITHIN_NOISE
    return Gate(name=name, limit=limit, value=metric.value, state=state)


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """A comparison of results with a reference.

    Attributes:
        method: What is compared.
        reference: ID of the results file that is the reference.
        value: The largest difference; None if not measured.
        limit: The largest allowed difference.
        state: What value, limit and counts give.
        compared: How many values were compared.
        expected: How many values the reference has. All of them are needed.
        counted: Of losses, the steps of the reference that need losses, over all seeds; it may print losses of some
            of them only. None: unknown, or not a comparison of losses.
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
    counted: int | None = None
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
    counted: int | None = None,
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
        counted=counted,
        not_finite=not_finite,
        why_null=why_null,
    )


def gate_problems(gate: Gate, metric: Metric | None) -> Iterator[str]:
    """Contradictions between a gate and its metric, each a sentence without a period."""
    if not LIMIT.fullmatch(gate.limit):
        yield f"gate {gate.name}: the limit is {shown(gate.limit)}, not such as '<= 0.5' or '>= 1000'"
        return
    if metric is not None and metric.origin == QUOTED:
        yield f"gate {gate.name}: its metric is quoted, not measured"
    judged = judged_gate(gate.name, gate.limit, metric)
    if gate != judged:
        claim, fact = (f"{gate.value}, {gate.state!r}" for gate in (gate, judged))
        yield f"gate {gate.name} is {claim}, but its metric and limit give {fact}"


def fidelity_problems(check: Fidelity) -> Iterator[str]:
    """Contradictions of a comparison, each a sentence without a period."""
    values = (check.value, check.limit)
    if any(value is not None and not 0 <= value < math.inf for value in values):
        numbers = f"{check.value} and {check.limit}"
        yield f"{check.method}: value and limit must be finite numbers of 0 or more, got {numbers}"
        return
    most = check.expected if check.counted is None else min(check.expected, check.counted)
    if not 0 <= check.compared <= most or check.not_finite < 0:
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
