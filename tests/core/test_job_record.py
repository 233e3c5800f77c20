"""The record of a job: the seconds and cost of its phases and restarts, from the nodes' times."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.core.job_bucket import JOB
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.record import attempt_records, attempt_seconds, graph_counts
from trainium_wire.job import Outcome
from trainium_wire.job_progress import Attempt, CacheUse, NodeProgress

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
USD_PER_HOUR = Decimal(360)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def node(number: int, **more: Any) -> NodeProgress:
    return NodeProgress(node=number, instance_id=f"i-{number}", state="ended", at=None, **more)


def attempt(number: int, *, started: float, ended: float, result: str, **more: Any) -> Attempt:
    outcome = Outcome(result=result, reason="why", at=at(ended))
    return Attempt(
        **{"instance_ids": ("i-0", "i-1"), "resume_from": None, **more},
        number=number,
        started=at(started),
        outcome=outcome,
    )


FIRST = attempt(
    1,
    started=10,
    ended=110,
    result="node-lost",
    nodes=(
        node(
            0, phases={"source": 2, "setup": 8, "running": 90, "first_step": 20}, progress={"step": "7", "event": "x"}
        ),
        node(1, phases={"source": 3, "setup": 6}, graphs={"compiled": 4, "cached": 1}),
    ),
)
SECOND = attempt(
    2,
    started=170,
    ended=270,
    result="succeeded",
    resume_from="step-5",
    checkpoint_at=at(80),
    nodes=(node(0, phases={"source": 4, "setup": 6, "running": 90, "first_step": 10, "results": 1}),),
)
RESTARTED = JobState(
    job=replace(JOB, waking_seconds=50), attempts=(FIRST, SECOND), outcome=Outcome(result="succeeded", at=at(270))
)


def events(state: JobState, event: str, usd_per_hour: Decimal | None = USD_PER_HOUR) -> list[dict[str, Any]]:
    return [dict(line) for line in attempt_records(state, usd_per_hour) if line["event"] == event]


def test_phase_has_the_slowest_nodes_seconds_and_cost() -> None:
    phases = events(RESTARTED, "phase")
    found = [(line["attempt"], line["phase"], line["seconds"], line["usd"]) for line in phases]
    assert found[:5] == [
        (None, "waking", 50, 5.0),
        (None, "queued", 10, 1.0),
        (1, "source", 3, 0.3),
        (1, "setup", 8, 0.8),
        (1, "running", 90, 9.0),
    ]
    assert {line["phase"] for line in phases if line.get("within") == "running"} == {"first_step"}


def test_restart_costs_lost_work_wait_and_first_step() -> None:
    [restart] = events(RESTARTED, "restart")
    assert restart == {
        "event": "restart",
        "attempt": 2,
        "checkpoint": "step-5",
        "lost_seconds": 30,
        "waited_seconds": 60,
        "begun_seconds": 20,
        "seconds": 110,
        "usd": 11.0,
    }


def test_time_before_and_between_attempts_costs_nothing_if_the_job_has_its_own_nodes() -> None:
    state = replace(RESTARTED, has_own_nodes=True)
    queued = next(line for line in events(state, "phase") if line["phase"] == "queued")
    assert (queued["seconds"], queued["usd"]) == (10, None)
    [restart] = events(state, "restart")
    assert (restart["seconds"], restart["usd"]) == (110, 5.0)
    [end] = events(state, "end")
    assert (end["seconds"], end["usd"]) == (270, 20.0)


def test_attempt_without_outcome_lasts_until_the_next_one_or_the_end_of_the_job() -> None:
    attempts = (replace(FIRST, outcome=None), replace(SECOND, outcome=None))
    assert attempt_seconds(replace(RESTARTED, attempts=attempts)) == 160 + 100
    assert attempt_seconds(replace(RESTARTED, attempts=())) is None


def test_job_lasts_until_its_nodes_have_stored_their_results() -> None:
    stored = tuple(replace(node(rank), at=at(270 + 30 * rank)) for rank in (0, 1))
    lost = replace(node(2), at=at(900), state="running")
    state = replace(RESTARTED, attempts=(FIRST, replace(SECOND, nodes=(*stored, lost))), has_own_nodes=True)
    assert attempt_seconds(state) == 100 + 130
    [end] = events(state, "end")
    assert (end["seconds"], end["usd"]) == (300, 23.0)


@pytest.mark.parametrize("saved_at", [None, at(-600)])
def test_attempt_that_saved_no_checkpoint_loses_all_work(saved_at: datetime | None) -> None:
    state = replace(RESTARTED, attempts=(FIRST, replace(SECOND, checkpoint_at=saved_at)))
    assert events(state, "restart")[0]["lost_seconds"] == 90


def test_unknown_price_is_none_not_zero() -> None:
    assert {line["usd"] for line in attempt_records(RESTARTED, None) if "usd" in line} == {None}


def test_graphs_are_counted_by_the_compile_cache_if_it_has_counts() -> None:
    printed = node(0, graphs={"compiled": 4, "cached": 1})
    known = replace(printed, caches=(CacheUse(stack="xla", hits=3, misses=5, compile_seconds=60),))
    unknown = replace(printed, caches=(CacheUse(stack="xla", hits=None, misses=5),))
    assert graph_counts(known) == {"compiled": 5, "cached": 3, "compile_seconds": 60}
    assert graph_counts(unknown) == {"compiled": 4, "cached": 1}


def test_running_time_ends_with_its_attempt() -> None:
    late = attempt(1, started=0, ended=46, result="node-lost", nodes=(node(1, phases={"running": 95}),))
    state = JobState(job=JOB, attempts=(late,), outcome=None)
    assert [line["seconds"] for line in events(state, "phase") if line["phase"] == "running"] == [46]
