"""The steps that a job's output reports, and which of them count: those after the warm-up."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainium_core.jobs.follow import LogLine
from trainium_wire.job_output import CACHED, COMPILED, PROGRESS, number, pairs_of

_GRAPH_EVENTS = (*CACHED, *COMPILED)

NO_SECONDS = "the script prints no seconds= in its progress lines"
NO_TOKENS = "the script prints no tokens= in its progress lines"


@dataclass(frozen=True, kw_only=True)
class Step:
    """A progress line.

    Attributes:
        number: Of the last step that the line reports.
        steps: How many steps it reports.
        seconds, tokens: Of these steps; None if the line does not have them.
        warms: Whether it is the first line of an attempt, a graph was compiled or loaded since the line before, or a
            line is missing before it, whose seconds are unknown.
    """

    number: int
    steps: int
    seconds: float | None
    tokens: float | None
    loss: float | None
    warms: bool


def steps_of(lines: Iterable[LogLine]) -> tuple[Step, ...]:
    """The steps of the last attempt, from the lines of the first process."""
    steps_read: list[Step] = []
    attempt, before, warms = 0, 0, True
    for line in lines:
        if line.attempt != attempt:
            attempt, before, warms = line.attempt, 0, True
            steps_read.clear()
        warms = warms or any(event in line.text for event in _GRAPH_EVENTS)
        match = PROGRESS.search(line.text)
        values = pairs_of(match[1]) if match else {}
        at = number(values.get("step", ""))
        if at is None or int(at) <= before:
            continue
        steps = int(at) - before if steps_read else 1
        warms = warms or (len(steps_read) > 1 and steps > steps_read[-1].steps)
        steps_read.append(
            Step(
                number=int(at),
                steps=steps,
                seconds=number(values.get("seconds", "")),
                tokens=number(values.get("tokens", "")),
                loss=number(values.get("loss", "")),
                warms=warms,
            )
        )
        before, warms = int(at), False
    return tuple(steps_read)


def warmup_rule(least: int) -> str:
    """The rule of `counted`, as a record states it."""
    first = "the first step" if least == 1 else f"the first {least} steps"
    return f"{first}, and each until no graph was compiled or loaded for all steps that count"


def counted(steps: Sequence[Step], wanted: int, least: int) -> tuple[Step, ...]:
    """The first lines in a row without a graph event that report `wanted` steps together; empty if there are none.

    least: how many steps of the run are warm-up at least.
    """
    rows: list[Step] = []
    passed = 0
    for step in steps:
        is_warmup = passed < least or step.warms
        passed += step.steps
        if is_warmup:
            rows.clear()
            continue
        rows.append(step)
        if sum(step.steps for step in rows) >= wanted:
            return tuple(rows)
    return ()
