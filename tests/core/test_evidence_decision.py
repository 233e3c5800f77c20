"""The decision of a pilot by the gates and tolerances of its records."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.evidence_records import with_metric, with_workload
from tests.core.job_bucket import JOB
from tests.core.test_pilot_report import (
    GOOD,
    GOOD_METRIC,
    GPU,
    LAB_RECORD,
    LIMITS,
    NOW,
    ONE_EVENT,
    evidence,
    fidelity,
    gate,
    page,
)
from trainium_cli.jobs.job_report import state_as_json
from trainium_core.evidence.decision import GO, NO, NOT_YET, Decision, decide
from trainium_core.evidence.fidelity import LOSS_CURVES
from trainium_core.evidence.folder import Answer, read_evidence
from trainium_core.evidence.gates import MET, MET_ONCE, NOT_MEASURED, NOT_MET, STATES, WITHIN_NOISE, judged_gate
from trainium_core.evidence.metric import MEASURED, Metric
from trainium_core.evidence.record import Record, Software
from trainium_core.jobs.progress import JobState
from trainium_wire.job import Outcome


def decided(*records: Record) -> Decision:
    """The decision by the records and that of the GPU, with which they compare their results."""
    return decide(evidence(*records, GPU))


def judged(record: Record, state: str) -> Record:
    """The record with one gate, in the state."""
    event = {"recovery_seconds": ONE_EVENT} if state == MET_ONCE else {}
    return replace(record, metrics={**GOOD.metrics, **event}, gates=(gate(state),))


@given(gates=st.lists(st.sampled_from(STATES)), checks=st.lists(st.sampled_from((MET, NOT_MET, NOT_MEASURED))))
def test_decision_follows_the_states_of_trainium(gates: list[str], checks: list[str]) -> None:
    names = [f"recovery_{at}" if state == MET_ONCE else f"gate_{at}" for at, state in enumerate(gates)]
    metrics = {
        name: ONE_EVENT if state == MET_ONCE else GOOD_METRIC
        for name, state in zip(names, gates, strict=True)
        if state != NOT_MEASURED
    }
    record = replace(
        GOOD,
        metrics=metrics,
        gates=tuple(
            judged_gate(name, LIMITS.get(state, "<= 1"), metrics.get(name))
            for name, state in zip(names, gates, strict=True)
        ),
        fidelity=tuple(fidelity(state, f"check {at}") for at, state in enumerate(checks)),
    )
    assert [gate.state for gate in record.gates] == gates
    verdict = decided(record).verdict
    if NOT_MET in (*gates, *checks):
        assert verdict == NO
    elif gates and checks and {*gates, *checks} <= {MET, MET_ONCE}:
        assert verdict == GO
    else:
        assert verdict == NOT_YET


@given(
    verdict=st.sampled_from(STATES),
    others=st.lists(st.tuples(st.sampled_from([GPU, LAB_RECORD]), st.sampled_from(STATES)), min_size=1, max_size=4),
)
def test_records_of_other_sides_never_change_the_decision(verdict: str, others: list[tuple[Record, str]]) -> None:
    own = judged(GOOD, verdict)
    added = [
        replace(
            judged(record, state),
            id=f"other-{at}",
            made="2026-12-01T00:00:00Z",
            fidelity=(fidelity(state if state in (MET, NOT_MEASURED) else NOT_MET),),
        )
        for at, (record, state) in enumerate(others)
    ]
    alone, together = decided(own), decided(own, *added)
    assert (alone.verdict, alone.reasons) == (together.verdict, together.reasons)
    assert decided(*added).verdict == NOT_YET


def test_gate_within_the_noise_is_not_yet_go_and_shows_its_interval() -> None:
    decision = decided(replace(GOOD, gates=(gate(WITHIN_NOISE),)))
    assert decision.verdict == NOT_YET
    assert decision.reasons == ("tokens per second: 10, 9 to 11 (95%), gate >= 9.5, met, within the noise (lm-trn2)",)


@pytest.mark.parametrize(
    ("name", "n", "state"),
    [
        ("x", 3, "met, within the noise"),
        ("x", 1, "met, within the noise"),
        ("recovery_seconds", 1, "met, one event"),
        ("recovery_seconds", None, "met, within the noise"),
    ],
)
def test_only_one_event_is_met_without_an_interval(name: str, n: int | None, state: str) -> None:
    metric = Metric(value=1.0, unit="s", n=n, origin="measured", why_null="none")
    assert judged_gate(name, "<= 2", metric).state == state
    assert judged_gate(name, "<= 0.5", metric).state == "not met"


def test_reason_of_a_tolerance_has_the_number_of_compared_values() -> None:
    assert "loss against lm-p5: 0.01, 6 values compared, tolerance <= 0.02, met (lm-trn2)" in decided(GOOD).reasons


@pytest.mark.parametrize(("method", "is_stated"), [("loss", True), (LOSS_CURVES, False), ("difference of acc", False)])
def test_comparison_that_cannot_be_computed_again_says_so(method: str, is_stated: bool) -> None:
    record = replace(GOOD, fidelity=(fidelity(MET, method),))
    note = "its value is taken as stated, and not computed again"
    assert (note in decided(record).judgements[-1].note) == is_stated
    assert (note in page(evidence(record, GPU))) == is_stated


def test_go_says_if_no_gate_limits_the_cost() -> None:
    assert decided(GOOD).reasons[-1] == "No gate limits the cost"
    name = "usd_per_million_tokens_paid"
    metric = Metric(value=0.5, unit="USD per million tokens", n=3, low=0.4, high=0.6, origin=MEASURED)
    cost = replace(GOOD, metrics={name: metric}, gates=(judged_gate(name, "<= 1", metric),))
    assert decided(cost).verdict == GO
    assert "No gate limits the cost" not in decided(cost).reasons


def test_gate_of_the_lab_says_that_it_does_not_decide() -> None:
    (own, other) = decided(replace(GOOD, fidelity=()), replace(LAB_RECORD, gates=(gate(NOT_MET),))).judgements
    assert {own.aside, other.aside} == {"", "measured on a stand-in, not on Trainium"}


def test_newest_record_decides_on_a_gate() -> None:
    first = with_metric(replace(GOOD, id="first"), value=4.0, low=3.0, high=6.0)
    assert first.gates[0].state == NOT_MET
    second = replace(GOOD, id="second", made="2026-11-25T12:00:00Z")
    assert decided(first, second).verdict == GO
    assert decided(replace(first, made="2026-11-26T12:00:00Z"), second).verdict == NO


def test_stack_without_support_prevents_go_unless_it_is_accepted_by_name() -> None:
    by_job = replace(GOOD, software=replace(GOOD.software, stack="xla"))
    by_environment = replace(GOOD, software=Software(environment="aws_neuronx_venv_pytorch_2_9"))
    for record in (by_job, by_environment):
        decision = decided(record)
        assert decision.verdict == NOT_YET
        assert "AWS does not support training with PyTorch/XLA" in decision.reasons[0]
        accepted = Answer(answer="xla, until Trainium2 is here", who="me", date="2026-11-28", document="")
        answers = {"support": accepted}
        assert decide(replace(evidence(record, GPU), answers=answers)).verdict == GO
        answers = {"support": replace(accepted, answer="what runs today")}
        assert decide(replace(evidence(record, GPU), answers=answers)).verdict == NOT_YET
    native = replace(GOOD, software=replace(GOOD.software, stack="native"))
    assert decided(native).verdict == GO


def test_unknown_stack_prevents_go_unless_it_is_accepted_by_name() -> None:
    for software, name in ((Software(), "unknown stack"), (Software(stack="mlx"), "mlx")):
        record = replace(GOOD, software=software)
        decision = decided(record)
        assert decision.verdict == NOT_YET
        assert decision.reasons[0].startswith("Whether AWS supports the software of lm-trn2 is unknown")
        assert f"name {name} in the answer support" in decision.reasons[0]
        accepted = Answer(answer=f"{name} is our own image", who="me", date="2026-11-28", document="")
        assert decide(replace(evidence(record, GPU), answers={"support": accepted})).verdict == GO
        unknown = replace(accepted, answer="unknown")
        assert decide(replace(evidence(record, GPU), answers={"support": unknown})).verdict == NOT_YET


def test_each_workload_on_trainium_needs_a_gate_and_a_tolerance() -> None:
    serving = with_workload(replace(GOOD, id="serve-trn2", fidelity=()), name="serve")
    decision = decided(replace(GOOD, gates=()), serving)
    assert decision.verdict == NOT_YET
    assert decision.reasons == (
        "No results of lm on Trainium have a gate that was set before the first run",
        "No results of serve on Trainium are compared with a reference",
    )
    assert decided(GOOD, replace(serving, fidelity=GOOD.fidelity)).verdict == GO


def test_moved_limit_prevents_go() -> None:
    first = replace(GOOD, id="first", gates=(gate(NOT_MET),))
    second = replace(GOOD, id="second", made="2026-11-25T12:00:00Z")
    decision = decided(first, second)
    assert decision.verdict == NOT_YET
    assert "The limit of tokens_per_second was >= 50 in first, and is >= 5 in second" in decision.reasons


def test_limit_that_moved_and_returned_prevents_go() -> None:
    limits = {"first": ">= 5", "second": ">= 6", "third": ">= 5"}
    records = [
        replace(
            GOOD,
            id=name,
            made=f"2026-11-2{5 + day}T12:00:00Z",
            gates=(judged_gate("tokens_per_second", limit, GOOD_METRIC),),
        )
        for day, (name, limit) in enumerate(limits.items())
    ]
    decision = decided(*records)
    assert decision.verdict == NOT_YET
    assert decision.reasons == (
        "The limit of tokens_per_second was >= 5 in first, and is >= 6 in second",
        "The limit of tokens_per_second was >= 6 in second, and is >= 5 in third",
    )


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome(result="failed", reason="rank 1: CUDA error", exit_code=1), "failed, exit code 1: rank 1: CUDA error"),
        (Outcome(result="stopped"), "stopped"),
        (None, "it had not ended: its state was waiting for the nodes"),
        (Outcome(result="succeeded", exit_code=0), None),
    ],
)
def test_failed_job_of_a_side_is_named_with_its_reason(outcome: Outcome | None, reason: str | None) -> None:
    shown = json.dumps(state_as_json(JobState(job=JOB, attempts=(), outcome=outcome)), default=str)
    reasons = decide(read_evidence({"pilot/trainium.job.json": shown.encode()}, NOW)).reasons
    expected = [] if reason is None else [f"The job {JOB.id} (trainium): {reason}"]
    assert [reason for reason in reasons if JOB.id in reason] == expected


def test_unreadable_job_of_a_side_is_named() -> None:
    assert any(
        "not the output of trn jobs --json" in reason
        for reason in decide(read_evidence({"gpu.job.json": b"{}"}, NOW)).reasons
    )
