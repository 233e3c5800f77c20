"""The record of a pilot's evidence: writing, reading, refusals, and comparability."""

import json
import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.core.evidence_records import (
    GPU_SIDE,
    LAB_SIDE,
    TRAINIUM_SIDE,
    WORKLOAD,
    with_hardware,
    with_metric,
    with_workload,
)
from trainium_core.evidence.comparability import comparable
from trainium_core.evidence.gates import Gate, judged_fidelity
from trainium_core.evidence.metric import Metric, unknown
from trainium_core.evidence.record import BenchWorkload, Comparability, Record, RecordError, read_record, record_text
from trainium_core.facts import DATA

TEXT = record_text(TRAINIUM_SIDE)
SCHEMA = Draft202012Validator(json.loads((DATA / "evidence" / "record.schema.json").read_text()))


@pytest.mark.parametrize("record", [TRAINIUM_SIDE, GPU_SIDE, LAB_SIDE])
def test_written_record_is_read_unchanged(record: Record) -> None:
    assert read_record(record_text(record)) == record
    assert read_record(record_text(record).encode()) == record
    assert SCHEMA.is_valid(json.loads(record_text(record)))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((), {"surprise": 1}),
        ((), {"schema": "trainium-pilot/2"}),
        ((), {"side": "cloud"}),
        ((), {"id": None}),
        (("hardware",), {"nodes": "one"}),
        (("hardware",), {"nodez": 1}),
        (("metrics", "tokens_per_second"), {"value": "10"}),
        (("runs", 0), {"loss": [["1", 2.5]]}),
        (("gates", 0), {"state": "fine"}),
    ],
)
def test_schema_refuses_what_the_reader_refuses(place: tuple[str | int, ...], value: dict[str, Any]) -> None:
    raw: Any = json.loads(TEXT)
    part = raw
    for key in place:
        part = part[key]
    part.update(value)
    with pytest.raises(RecordError):
        read_record(json.dumps(raw))
    assert not SCHEMA.is_valid(raw)


def measured(value: float, unit: str) -> Metric:
    return Metric(value=value, unit=unit, n=3, low=value, high=value, origin="measured")


@given(
    st.builds(measured, st.floats(allow_nan=False, allow_infinity=False), st.text())
    | st.builds(unknown, st.text(), st.text(min_size=1), n=st.none() | st.integers(0))
)
def test_any_metric_survives_writing_and_reading(metric: Metric) -> None:
    record = replace(TRAINIUM_SIDE, metrics={"x": metric}, gates=())
    assert read_record(record_text(record)) == record


def test_missing_key_has_its_default_or_is_null() -> None:
    def written(value: Any) -> Any:
        """The value without keys that are null or empty."""
        if isinstance(value, dict):
            return {
                key: written(item) for key, item in cast("dict[str, Any]", value).items() if item not in (None, [], {})
            }
        return [written(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value

    metrics = {**TRAINIUM_SIDE.metrics, "p99": unknown("s", "too few steps")}
    record = replace(TRAINIUM_SIDE, metrics=metrics, runs=tuple(replace(run, phases={}) for run in TRAINIUM_SIDE.runs))
    short = written(json.loads(record_text(record)))
    assert SCHEMA.is_valid(short)
    assert "value" not in short["metrics"]["p99"]
    assert read_record(json.dumps(short)) == record


@given(st.integers(0, len(TEXT.rstrip()) - 1))
def test_truncated_record_is_refused(length: int) -> None:
    with pytest.raises(RecordError, match="not a results file"):
        read_record(TEXT[:length])


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    raw = json.loads(TEXT)
    change(raw)
    return json.dumps(raw)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "its schema is None"),
        ('{"schema": "trainium-pilot/2"}', "its schema is 'trainium-pilot/2', not 'trainium-pilot/1'"),
        ("[" * 100_000, "it is not JSON"),
        (TEXT.replace("10.0", "NaN"), "it has the number NaN"),
        (TEXT.replace("10.0", "1e999"), "metrics.tokens_per_second.value is inf, which is not finite"),
        (TEXT.replace("2.5", "1e999"), r"runs\[0\].loss\[0\]\[1\] is inf, which is not finite"),
        (changed(lambda raw: raw["runs"][0].update(loss=[[1.0]])), r"runs\[0\].loss\[0\] is \[1.0\], not a step"),
        (changed(lambda raw: raw["runs"][0].update(loss=[[1.5, 2]])), r"loss\[0\] is \[1.5, 2.0\], not a step"),
        (changed(lambda raw: raw["runs"][0].update(steps=9, last_step=8)), "9 counted steps cannot end at step 8"),
        (TEXT.replace("10.0", f"1{'0' * 400}"), r"metrics.tokens_per_second.value is 10{59}\.\.\., which is too large"),
        (TEXT.replace("10.0", '"10"'), "metrics.tokens_per_second.value is '10', not a number"),
        (TEXT.replace("10.0", "true"), "metrics.tokens_per_second.value is True, not a number"),
        (changed(lambda raw: raw["runs"][0].update(seed=1.5)), r"runs\[0\].seed is 1.5, not a whole number"),
        (changed(lambda raw: raw.update(runs={})), "runs is {}, not a list"),
        (changed(lambda raw: raw.update(hardware=3)), "hardware is 3, not an object"),
        (changed(lambda raw: raw["hardware"].pop("type")), "hardware.type is missing"),
        (changed(lambda raw: raw["hardware"].update(watts=3)), "hardware.watts is not part of trainium-pilot/1"),
        (changed(lambda raw: raw.update(kind="other")), "kind is 'other', not one of bench"),
        (changed(lambda raw: raw.update(made="now")), "made is 'now', not a time"),
    ],
)
def test_invalid_record_is_refused_with_reason(text: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        read_record(text)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": None}, "null without a reason"),
        ({"origin": None}, "origin is None"),
        ({"origin": "guessed"}, "origin is 'guessed'"),
        ({"origin": "quoted"}, "quoted number needs source and date"),
        ({"origin": "imported"}, "imported number needs its source"),
        ({"origin": "derived", "method": None}, "derived number needs its formula"),
        ({"low": None}, "an interval needs"),
        ({"low": None, "high": None, "level": None}, "n is 3, so the number needs an interval"),
        ({"low": 12.0}, "low 12.0 is more than high 11.0"),
        ({"value": float("inf")}, "not finite"),
        ({"value": 12.0}, "outside of its interval, 9.0 to 11.0"),
        ({"value": -5.0, "low": -6.0}, "a rate must be above 0 and per second, got -5.0"),
        ({"unit": "bananas"}, "a rate must be above 0 and per second, got 10.0 bananas"),
        ({"n": 5}, "n is 5, and 3 runs count"),
    ],
)
def test_invalid_metric_is_refused_with_reason(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        with_metric(TRAINIUM_SIDE, **changes)


@pytest.mark.parametrize("side", ["trainium", "gpu", "cpu"])
def test_lab_side_and_lab_type_require_each_other(side: str) -> None:
    with pytest.raises(RecordError, match="only types of the lab begin with lab:"):
        replace(LAB_SIDE, side=side)
    with pytest.raises(RecordError, match="only types of the lab begin with lab:"):
        replace(TRAINIUM_SIDE, side="lab")


@pytest.mark.parametrize(("record", "side"), [(TRAINIUM_SIDE, "gpu"), (GPU_SIDE, "trainium")])
def test_side_must_match_the_instance_type(record: Record, side: str) -> None:
    with pytest.raises(RecordError, match="which is not of this side"):
        replace(record, side=side)


def test_gate_state_must_match_its_value() -> None:
    with pytest.raises(
        RecordError, match="gate p99 is None, 'met', but its metric and limit give None, 'not measured'"
    ):
        replace(TRAINIUM_SIDE, gates=(Gate(name="p99", limit="<= 1", value=None, state="met"),))


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (("tokens_per_second", ">= 50000", 10.0, "met"), "give 10.0, 'not met'"),
        (("tokens_per_second", ">= 5", 98010.0, "met"), "give 10.0, 'met'"),
        (("tokens_per_second", ">= 9.5", 10.0, "met"), "give 10.0, 'met, within the noise'"),
        (("tokens_per_second", "whatever", 10.0, "met"), "the limit is 'whatever', not such as"),
        (("no_metric", ">= 5", 10.0, "met"), "give None, 'not measured'"),
        (("tokens_per_second", ">= 5", 10.0, "fine"), "give 10.0, 'met'"),
    ],
)
def test_gate_that_its_metric_contradicts_is_refused(gate: tuple[str, str, float, str], message: str) -> None:
    name, limit, value, state = gate
    with pytest.raises(RecordError, match=message):
        replace(TRAINIUM_SIDE, gates=(Gate(name=name, limit=limit, value=value, state=state),))


CHECK = judged_fidelity("loss", "lm-p5", 0.01, 0.02, compared=6, expected=6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": 5.0}, "state is 'met', but value, limit and counts give 'not met'"),
        ({"compared": 5}, "give 'not measured'"),
        ({"compared": 0, "expected": 0}, "give 'not measured'"),
        ({"not_finite": 1}, "give 'not met'"),
        ({"value": None, "why_null": "x"}, "give 'not measured'"),
        ({"value": None}, "needs a reason in why_null"),
        ({"limit": math.nan}, "must be finite numbers of 0 or more"),
        ({"compared": 7}, "7 of 6 values cannot have been compared"),
        ({"reference": "lm-trn2"}, "the results are compared with themselves"),
    ],
)
def test_fidelity_that_its_numbers_contradict_is_refused(changes: dict[str, Any], message: str) -> None:
    assert replace(TRAINIUM_SIDE, fidelity=(CHECK,)).fidelity == (CHECK,)
    with pytest.raises(RecordError, match=message):
        replace(TRAINIUM_SIDE, fidelity=(replace(CHECK, **changes),))


def test_number_without_three_runs_that_count_is_refused() -> None:
    excluded = tuple(replace(run, excluded="a node failed") for run in TRAINIUM_SIDE.runs)
    for runs in ((), excluded, TRAINIUM_SIDE.runs[:2]):
        with pytest.raises(RecordError, match="runs count: n must be their number, and at least 3"):
            replace(TRAINIUM_SIDE, runs=runs)


def test_more_accelerators_than_the_nodes_have_are_refused() -> None:
    with pytest.raises(RecordError, match=r"hardware\.used is 999, more than the 1 accelerators"):
        with_hardware(TRAINIUM_SIDE, used=999)


def test_equal_conditions_are_comparable() -> None:
    comparison = comparable(TRAINIUM_SIDE, GPU_SIDE)
    assert (comparison.verdict, comparison.different, comparison.against) == ("comparable", (), "lm-p5")
    assert {"model", "seq", "steps", "precision", "price basis"} <= {*comparison.equal}


COMPARED = [
    field.name for field in fields(BenchWorkload) if field.name not in ("command", "parallelism", "precision", "tuned")
]


@pytest.mark.parametrize("name", COMPARED)
def test_records_with_one_different_field_are_not_comparable(name: str) -> None:
    value = 7 if isinstance(getattr(WORKLOAD, name), int) else "other"
    comparison = comparable(TRAINIUM_SIDE, with_workload(GPU_SIDE, **{name: value}))
    assert comparison.verdict.startswith(f"not comparable: {name} (")
    assert len(comparison.different) == 1


@pytest.mark.parametrize(
    "name", ["model", "dataset_sha256", "seq", "global_batch", "precision", "steps", "warmup", "tuned"]
)
def test_field_unstated_on_both_sides_prevents_comparison(name: str) -> None:
    comparison = comparable(*(with_workload(side, **{name: None}) for side in (TRAINIUM_SIDE, GPU_SIDE)))
    assert comparison.verdict.startswith(f"not comparable: {name} (not stated")


def test_precisions_of_one_class_are_comparable() -> None:
    assert comparable(TRAINIUM_SIDE, with_workload(GPU_SIDE, precision="float16")).comparable


def test_own_precision_and_tuning_are_compared_as_the_best_of_each_side() -> None:
    comparison = comparable(TRAINIUM_SIDE, with_workload(GPU_SIDE, precision="fp8", tuned=False))
    assert comparison.comparable
    assert comparison.verdict == (
        "comparable as the best of each side: precision (bf16 against fp8), tuned (yes against no)"
    )


def test_unstated_accelerator_use_prevents_comparison() -> None:
    comparison = comparable(TRAINIUM_SIDE, with_hardware(GPU_SIDE, used=None))
    assert comparison.different == ("accelerators used (not stated by lm-p5)",)


def test_price_basis_matters_only_for_cost() -> None:
    other = with_hardware(GPU_SIDE, purchase="capacity-block")
    assert comparable(TRAINIUM_SIDE, other).different == ("price basis (on-demand against capacity-block)",)
    assert comparable(TRAINIUM_SIDE, other, of_cost=False).comparable


@pytest.mark.parametrize("other", [replace(LAB_SIDE, id="other"), GPU_SIDE])
def test_lab_is_comparable_with_no_side(other: Record) -> None:
    assert comparable(LAB_SIDE, other).different == ("side (a stand-in has no accelerators)",)


def test_lab_record_that_claims_comparability_is_refused() -> None:
    compared = Comparability(against="lm-p5", equal=(), different=(), comparable=True)
    with pytest.raises(RecordError, match="side is lab: it cannot be comparable with lm-p5"):
        replace(LAB_SIDE, comparable=(compared,))


@pytest.mark.parametrize(
    ("claim", "different", "message"),
    [
        (False, ("seq (1 against 2)",), "the ratio tokens_per_second has a value"),
        (True, ("seq (1 against 2)",), "comparable is true, which contradicts the differences"),
        (False, (), "comparable is false, which contradicts the differences"),
    ],
)
def test_contradictory_comparison_is_refused(claim: bool, different: tuple[str, ...], message: str) -> None:
    ratio = Metric(value=2.0, unit="ratio", origin="derived", method="a / b")
    compared = Comparability(
        against="lm-p5", equal=(), different=different, comparable=claim, ratios={"tokens_per_second": ratio}
    )
    with pytest.raises(RecordError, match=message):
        replace(TRAINIUM_SIDE, comparable=(compared,))
