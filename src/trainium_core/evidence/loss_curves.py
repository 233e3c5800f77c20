"""The losses of runs by seed and step, and those that a reference needs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median_low

from trainium_core.evidence.record import BenchWorkload, RecordedRun
from trainium_core.evidence.steps import least_warmup
from trainium_core.plurals import count

_WIDEST_GAP = 2
"""In median intervals: trackers thin out a curve at slightly irregular steps."""

Losses = Mapping[tuple[int, int], float | None]
"""Losses by seed and step; None if the loss is not finite."""


def losses_by_step(runs: Sequence[RecordedRun], seeds: Sequence[int]) -> Losses:
    """The losses of the runs of these seeds that count."""
    return {
        (run.seed, int(step)): loss
        for run in _with_losses(runs)
        if run.seed is not None and run.seed in seeds
        for step, loss in run.loss
        if step is not None
    }


def _same_seed(runs: Sequence[RecordedRun], seeds: Sequence[int]) -> str:
    """Why losses by seed are not those of all runs that count; empty if they are."""
    known = [run.seed for run in _with_losses(runs) if run.seed is None or run.seed in seeds]
    return "two runs have the same seed, or none" if None in known or len({*known}) < len(known) else ""


def needed_steps(
    reference: Sequence[RecordedRun], workload: BenchWorkload, seeds: Sequence[int]
) -> Mapping[int, range]:
    """The steps of each seed at which a reference needs losses: the `steps` of the workload after the warm-up.

    An imported reference has no counted steps: its warm-up is the shortest that the workload allows.
    """
    first = {
        run.seed: run.last_step - run.steps + 1
        for run in reference
        if run.excluded is None and run.last_step is not None and run.steps is not None
    }
    least = least_warmup(workload.warmup)
    starts = {seed: first.get(seed, None if least is None else least + 1) for seed in seeds}
    return {
        seed: range(0) if start is None else range(start, start + (workload.steps or 0))
        for seed, start in starts.items()
    }


def reference_problems(
    reference: Sequence[RecordedRun], workload: BenchWorkload, seeds: Sequence[int]
) -> Iterator[str]:
    """Why the losses of a reference do not represent the steps of a workload, one sentence each without a period.

    It needs at least two losses of each seed, without gaps, which are finite.
    """
    if problem := _same_seed(reference, seeds):
        yield f"of the reference, {problem}"
    if not seeds:
        yield "no run has a seed"
    losses = losses_by_step(reference, seeds)
    for seed, needed in needed_steps(reference, workload, seeds).items():
        steps = sorted(step for of_seed, step in losses if of_seed == seed and step in needed)
        yield from _gaps(steps, needed, seed)
        for step in steps:
            if losses[seed, step] is None:
                yield f"the loss of the reference at step {step} with seed {seed} is not finite"


def loss_problems(
    runs: Sequence[RecordedRun], reference: Sequence[RecordedRun], workload: BenchWorkload, seeds: Sequence[int]
) -> Iterator[str]:
    """Why losses cannot be compared with those of a reference, one sentence each without a period."""
    if problem := _same_seed(runs, seeds):
        yield f"of the side, {problem}"
    yield from reference_problems(reference, workload, seeds)
    losses, needed = losses_by_step(runs, seeds), needed_steps(reference, workload, seeds)
    for seed, step in losses_by_step(reference, seeds):
        if step in needed[seed] and (seed, step) not in losses:
            yield f"the side has no loss at step {step} with seed {seed}"


def length(steps: range) -> int:
    """The length, also if len() would overflow."""
    return steps.stop - steps.start


def _with_losses(runs: Sequence[RecordedRun]) -> Sequence[RecordedRun]:
    return [run for run in runs if run.excluded is None and run.loss]


def _gaps(steps: Sequence[int], needed: range, seed: int) -> Iterator[str]:
    if not steps:
        at = f"from step {needed.start} to {needed.stop - 1}" if needed else "at counted steps"
        yield f"the reference has no losses {at} with seed {seed}"
    elif len(steps) < min(2, length(needed)):
        yield f"the reference has a loss at 1 of {length(needed):,} counted steps with seed {seed}"
    else:
        interval = median_low([after - before for before, after in pairwise(steps)]) if len(steps) > 1 else 1
        ends = (needed.start - 1, *steps, needed.stop)
        for before, after in pairwise(ends):
            if after - before > _WIDEST_GAP * interval:
                between = f"between steps {before} and {after} with seed {seed}"
                yield f"the reference has a loss every {count(interval, 'step')}, but none {between}"
