"""The steps that a job's output reports, and which of them count: those after the warm-up."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainium_core.jobs.follow import LogLine
from trainium_wire.job_output import CACHED, COMPILED, PROGRESS, number, progress_pairs

_GRAPH_EVENTS = (*CACHED, *COMPILED)

NO_SECONDS = "a counted progress line has no seconds= with a number"
NO_TOKENS = "a counted progress line has no tokens= with a number"


@dataclass(frozen=True, kw_only=True)
class TrainingStep:
    """The steps that a progress line reports.

    Attributes:
        number: The number of the last of these steps.
        steps: How many steps there are; 1 for the first line of an attempt.
        seconds, tokens: The sum over these steps; None if the line does not have it.
        loss: The loss of the last step, which may be NaN or infinite; None if the line does not have it.
        is_warmup: Whether the line is the first of an attempt, a graph was compiled or loaded since the line before
            it, or a line before it is missing.
    """

    number: int
    steps: int
    seconds: float | None
    tokens: float | None
    loss: float | None
    is_warmup: bool


def training_steps(lines: Iterable[LogLine]) -> tuple[TrainingStep, ...]:
    """The steps of the last attempt. The lines must be those of one process."""
    steps_read: list[TrainingStep] = []
    attempt, before, is_warmup = 0, 0, True
    for line in lines:
        if line.attempt != attempt:
            attempt, before, is_warmup = line.attempt, 0, True
            steps_read.clear()
        is_warmup = is_warmup or any(event in line.text for event in _GRAPH_EVENTS)
        match = PROGRESS.search(line.text)
        values = progress_pairs(match[1]) if match else {}
        at = number(values.get("step", ""))
        if at is None or int(at) <= before:
            continue
        steps = int(at) - before if steps_read else 1
        is_warmup = is_warmup or (len(steps_read) > 1 and steps > steps_read[-1].steps)
        steps_read.append(
            TrainingStep(
                number=int(at),
                steps=steps,
                seconds=number(values.get("seconds", "")),
                tokens=number(values.get("tokens", "")),
                loss=_loss(values.get("loss", "")),
                is_warmup=is_warmup,
            )
        )
        before, is_warmup = int(at), False
    return tuple(steps_read)


def repeated_seconds(lines: Iterable[LogLine]) -> float | None:
    """Seconds of the steps of the first attempt that the second repeats; None if a line does not have its seconds.

    The lines must be those of one process. Without a progress line in one of the attempts, the result is None too.
    """
    all_lines = tuple(lines)
    first, second = (training_steps(line for line in all_lines if line.attempt == at) for at in (1, 2))
    if not first or not second:
        return None
    repeated = [step.seconds for step in first if step.number >= second[0].number]
    known = [seconds for seconds in repeated if seconds is not None]
    return sum(known) if len(known) == len(repeated) else None


def _loss(text: str) -> float | None:
    """The loss; None if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return None


def warmup_rule(least: int) -> str:
    """The rule of `counted`, as a record states it."""
    first = "the first step" if least == 1 else f"the first {least} steps"
    return f"{first}, and all steps up to the last compiled or loaded graph before the counted steps"


def least_warmup(rule: str | None) -> int | None:
    """The minimum number of warm-up steps of a `warmup_rule`; None if it is another rule."""
    match = re.match(r"the first (?:step|([0-9]{1,9}) steps),", rule or "")
    return int(match[1] or 1) if match else None


def counted(steps: Sequence[TrainingStep], wanted: int, least: int) -> tuple[TrainingStep, ...]:
    """The first consecutive lines after the warm-up that together report at least the wanted number of steps.

    Empty if there are none.

    Args:
        steps: All lines of an attempt.
        wanted: How many steps to count at least.
        least: The minimum number of warm-up steps.
    """
    rows: list[TrainingStep] = []
    passed = 0
    for step in steps:
        is_warmup = passed < least or step.is_warmup
        passed += step.steps
        if is_warmup:
            rows.clear()
            continue
        rows.append(step)
        if sum(step.steps for step in rows) >= wanted:
            return tuple(rows)
    return ()
