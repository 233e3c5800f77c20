"""Steps from the output of a job, and the warm-up."""

from hypothesis import given
from hypothesis import strategies as st

from trainium_core.evidence.steps import (
    TrainingStep,
    counted,
    least_warmup,
    repeated_seconds,
    training_steps,
    warmup_rule,
)
from trainium_core.jobs.follow import LogLine


def lines(*texts: str, attempt: int = 1) -> list[LogLine]:
    return [LogLine(attempt=attempt, rank=0, text=text) for text in texts]


def numbers(found: tuple[TrainingStep, ...]) -> list[int]:
    return [step.number for step in found]


def test_steps_are_read_with_seconds_tokens_and_loss() -> None:
    [first, second] = training_steps(
        lines("hello", "TRN step=10 loss=2.5 tokens=80 seconds=4", "x TRN step=12 tokens=many seconds=nan")
    )
    assert (first.number, first.steps, first.seconds, first.tokens, first.loss, first.is_warmup) == (
        10,
        1,
        4,
        80,
        2.5,
        True,
    )
    assert (second.steps, second.seconds, second.tokens, second.loss, second.is_warmup) == (2, None, None, None, False)


def test_only_the_last_attempt_counts() -> None:
    steps = training_steps([*lines("TRN step=1", "TRN step=2"), *lines("TRN step=2", "TRN step=3", attempt=2)])
    assert numbers(steps) == [2, 3]
    assert steps[0].is_warmup


def test_graph_event_restarts_the_count_of_steps() -> None:
    steps = training_steps(
        lines(
            "Compiler status PASS",
            "TRN step=1",
            "TRN step=2",
            "INFO: Using a cached neff at /var/tmp/x",
            "TRN step=3",
            "TRN step=4",
            "TRN step=5",
            "TRN step=6",
        )
    )
    assert numbers(counted(steps, 1, 1)) == [2]
    assert numbers(counted(steps, 2, 1)) == [4, 5]
    assert numbers(counted(steps, 1, 5)) == [6]
    assert counted(steps, 4, 1) == ()


def test_count_of_steps_restarts_after_a_missing_line() -> None:
    steps = training_steps(lines(*(f"TRN step={at}" for at in (1, 2, 3, 4, 6, 7, 8))))
    assert numbers(counted(steps, 2, 1)) == [2, 3]
    assert numbers(counted(steps, 2, 3)) == [7, 8]
    assert counted(steps, 4, 1) == ()


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 6), st.integers(1, 6))
def test_counted_steps_follow_each_other_without_graph_events(events: list[bool], wanted: int, least: int) -> None:
    texts = [
        text for at, event in enumerate(events, 1) for text in (["Compiler status PASS"] * event + [f"TRN step={at}"])
    ]
    counted_steps = counted(training_steps(lines(*texts)), wanted, least)
    if counted_steps:
        assert len(counted_steps) == wanted
        assert numbers(counted_steps) == list(range(counted_steps[0].number, counted_steps[0].number + wanted))
        assert counted_steps[0].number > least
        assert not any(events[at - 1] for at in numbers(counted_steps))
    else:
        assert not any(not any(events[start : start + wanted]) for start in range(least, len(events) - wanted + 1))


def test_repeated_steps_are_those_that_the_next_attempt_reports_again() -> None:
    first = lines("TRN step=1 seconds=9", "TRN step=2 seconds=2", "TRN step=3 seconds=0.5")
    assert repeated_seconds([*first, *lines("TRN step=2 seconds=2", "TRN step=3", attempt=2)]) == 2.5
    assert repeated_seconds([*first, *lines("TRN step=4 seconds=2", attempt=2)]) == 0


def test_repeated_time_is_unknown_without_seconds_or_without_steps() -> None:
    again = lines("TRN step=1 seconds=2", attempt=2)
    assert repeated_seconds([*lines("TRN step=1"), *again]) is None
    assert repeated_seconds(again) is None
    assert repeated_seconds(lines("TRN step=1 seconds=2")) is None


def test_rule_of_the_warmup_has_its_minimum() -> None:
    assert [least_warmup(warmup_rule(least)) for least in (1, 5)] == [1, 5]
    assert least_warmup("none") is least_warmup(None) is None
