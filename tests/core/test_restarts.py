"""Whether and when a job is restarted, over sequences of failures."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_wire.job import FAILED, HUNG, NODE_LOST, STOPPED, Job, Outcome
from trainium_wire.restarts import LONGEST_PAUSE_SECONDS, EndedAttempt, has_progressed, restart_pause

ENDED = st.builds(
    EndedAttempt,
    st.builds(Outcome, st.sampled_from((NODE_LOST, HUNG, FAILED)), exit_code=st.just(3)),
    st.booleans(),
    st.booleans(),
)
LOST, LOST_BEFORE_JOINING = (
    EndedAttempt(Outcome(NODE_LOST), True, False),
    EndedAttempt(Outcome(NODE_LOST), False, False),
)
SAVED_AND_LOST = EndedAttempt(Outcome(NODE_LOST), True, True)


def job(retries: int) -> Job:
    return Job("train", 2, 32, "true", retries=retries, retry_on_exit_codes=(3,), retry_on_hang=True, hang_seconds=60)


def run(retries: int, ends: list[EndedAttempt]) -> tuple[list[EndedAttempt], list[int]]:
    """The attempts that begin if they would end like this, and the pauses between them."""
    pauses: list[int] = []
    for number in range(1, len(ends)):
        pause = restart_pause(job(retries), ends[:number])
        if pause is None:
            return ends[:number], pauses
        pauses.append(pause)
    return ends, pauses


@given(st.integers(0, 5), st.lists(ENDED, min_size=1, max_size=30))
def test_retries_limit_the_restarts_without_progress(retries: int, ends: list[EndedAttempt]) -> None:
    begun, _ = run(retries, ends)
    used = 0
    for attempt in begun[:-1]:
        used = 0 if attempt.progressed else used
        used += attempt.joined or attempt.outcome.result != NODE_LOST
        assert used <= retries


@given(st.integers(1, 5), st.lists(st.sampled_from((LOST_BEFORE_JOINING, SAVED_AND_LOST)), min_size=1, max_size=30))
def test_losses_after_progress_or_before_all_nodes_joined_never_end_a_job(
    retries: int, ends: list[EndedAttempt]
) -> None:
    assert run(retries, ends)[0] == ends


@given(st.integers(1, 30), st.lists(ENDED, min_size=1, max_size=30))
def test_pauses_grow_until_there_is_progress(retries: int, ends: list[EndedAttempt]) -> None:
    begun, pauses = run(retries, ends)
    for before, pause, attempt in zip(pauses, pauses[1:], begun[1:], strict=False):
        assert pause == 0 if attempt.progressed else before <= pause <= LONGEST_PAUSE_SECONDS
        assert attempt.progressed or pause >= 10


@pytest.mark.parametrize(
    ("retries", "ends", "pause"),
    [
        (2, [LOST], 0),
        (2, [LOST, LOST], 10),
        (2, [LOST, LOST, LOST], None),
        (2, [LOST, LOST, SAVED_AND_LOST], 0),
        (2, [LOST, LOST_BEFORE_JOINING, LOST_BEFORE_JOINING, LOST], 40),
        (0, [LOST_BEFORE_JOINING], None),
        (2, [EndedAttempt(Outcome(STOPPED), True, True)], None),
    ],
)
def test_pause_depends_on_the_attempts_since_the_last_progress(
    retries: int, ends: list[EndedAttempt], pause: int | None
) -> None:
    assert restart_pause(job(retries), ends) == pause


@pytest.mark.parametrize(
    ("result", "before", "after", "progressed"),
    [
        (FAILED, (None, None), ("step-1", "10:00"), True),
        (FAILED, ("step-1", "10:00"), ("step-2", "10:05"), True),
        (FAILED, ("last", "10:00"), ("last", "10:05"), False),
        (NODE_LOST, ("last", "10:00"), ("last", "10:05"), True),
        (NODE_LOST, ("last", "10:00"), ("last", "10:00"), False),
        (NODE_LOST, (None, None), (None, None), False),
    ],
)
def test_new_complete_checkpoint_is_progress(
    result: str, before: tuple[Any, Any], after: tuple[Any, Any], progressed: bool
) -> None:
    start, following = (
        {"resume_job": "train", "resume_from": name, "resume_saved_at": at} for name, at in (before, after)
    )
    assert has_progressed(result, start, following) == progressed


def test_first_checkpoint_of_a_job_that_resumes_another_is_progress() -> None:
    start = {"resume_job": "earlier", "resume_from": "last", "resume_saved_at": "10:00"}
    assert has_progressed(FAILED, start, {**start, "resume_job": "train", "resume_saved_at": "10:05"})
