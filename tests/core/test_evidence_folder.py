"""Which files of a pilot count: unreadable, foreign, contradictory and future ones are named."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.core.evidence_records import TRAINIUM_SIDE
from tests.core.test_pilot_report import (
    GOOD,
    GOOD_METRIC,
    GPU,
    LAB_RECORD,
    NOW,
    assessed,
    evidence,
    files_of,
    page,
    twelve_months,
)
from trainium_core.evidence.decision import GO, NOT_YET, decide
from trainium_core.evidence.folder import CLOCK_SKEW
from trainium_core.evidence.gates import judged_gate
from trainium_core.evidence.pack import digest
from trainium_core.evidence.record import TRAINIUM, Input, record_text
from trainium_wire.formats import time_text


def test_truncated_record_is_named_and_prevents_go() -> None:
    pilot = evidence(GOOD, broken_json=record_text(GPU).encode()[:300])
    assert decide(pilot).verdict == NOT_YET
    assert "broken.json" in page(pilot)
    assert "truncated" in pilot.not_read["broken.json"]


def test_json_of_other_programs_is_listed_and_decides_nothing() -> None:
    pilot = evidence(GOOD, GPU, package_json=b'{"name": "x"}')
    assert decide(pilot).verdict == GO
    assert "package.json" in page(pilot)


def test_two_records_with_one_id_prevent_go() -> None:
    pilot = evidence(GOOD, replace(GOOD, gates=(judged_gate("tokens_per_second", ">= 1", GOOD_METRIC),)))
    assert decide(pilot).verdict == NOT_YET
    assert any("have the same ID, lm-trn2" in contradiction for contradiction in pilot.contradictions)
    assert evidence(GOOD, GOOD, GPU).contradictions == ()


def test_changed_file_of_gates_prevents_go() -> None:
    based = replace(TRAINIUM_SIDE, gates=GOOD.gates, fidelity=GOOD.fidelity)
    pilot = evidence(based, bench_toml=b"gates = {}")
    assert decide(pilot).verdict == NOT_YET
    assert any("is based on a different bench.toml" in contradiction for contradiction in pilot.contradictions)
    assert evidence(based, GPU).contradictions == ()


def test_infinite_numbers_and_deep_nesting_are_not_read() -> None:
    infinite = assessed().replace(b'"files": ', b'"files": 1e999, "unused": ', 1)
    assert "assess.json" in evidence(GOOD, assess_json=infinite).not_read
    assert "contract.toml" in evidence(GOOD, contract_toml=b"a = " + b"[" * 100_000).not_read


def test_observed_job_without_a_side_is_not_read() -> None:
    pilot = evidence(GOOD, assess_json=assessed(observed={"job": "lm-1"}))
    assert "assess.json" in pilot.not_read


def test_answer_to_an_unknown_question_is_not_lost() -> None:
    not_read = evidence(GOOD, contract_toml=b'[service_levels]\nanswer = "99.9 %"\n').not_read
    assert "service-levels" in not_read["contract.toml"]


def test_lab_record_with_side_trainium_is_not_read() -> None:
    record: Mapping[str, Any] = json.loads(record_text(LAB_RECORD))
    forged = json.dumps({**record, "side": TRAINIUM}).encode()
    assert "only types of the lab begin with lab:" in evidence(forged_json=forged).not_read["forged.json"]


@pytest.mark.parametrize(
    ("later", "verdict"), [(CLOCK_SKEW, GO), (CLOCK_SKEW + timedelta(seconds=1), NOT_YET)], ids=str
)
def test_record_dated_in_the_future_is_named_and_does_not_count(later: timedelta, verdict: str) -> None:
    late = replace(GOOD, made=time_text(NOW + later))
    pilot = evidence(late, GPU, *twelve_months())
    decision = decide(pilot)
    assert decision.verdict == verdict
    assert (late in pilot.records.values()) == (verdict == GO)
    named = [reason for reason in decision.reasons if f"lm-trn2 is dated {late.made}, in the future" in reason]
    assert len(named) == (verdict != GO)


def test_future_record_that_is_an_input_of_another_is_named() -> None:
    late = replace(GOOD, made=time_text(NOW + timedelta(days=365)))
    [(path, content)] = files_of(late).items()
    year = [replace(record, inputs=(Input(path=path, sha256=digest(content), bytes=1),)) for record in twelve_months()]
    assert path in evidence(late, GPU, *year).not_read
