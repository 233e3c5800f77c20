"""How close the results of a side are to those of a reference: its loss curves, and scores of other tools."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median_low

from trainium_core.evidence.bench_file import BenchFile, FidelityFile
from trainium_core.evidence.gates import Fidelity, judged_fidelity
from trainium_core.evidence.record import Record, RecordedRun
from trainium_core.plurals import count

LOSS_CURVES = "largest relative difference of the losses of a step, same seed"
_SCORE = "difference of "

_LEAST = 1e-12

Losses = Mapping[tuple[int, int], float | None]
"""Losses by seed and step; None if the loss is not finite."""


def with_fidelity(records: Sequence[Record], file: BenchFile) -> tuple[Record, ...]:
    """The records, each compared with the record of the reference, if the file names one."""
    if file.fidelity is None:
        return tuple(records)
    of_side = f"{file.name}-{file.fidelity.reference}"
    reference = file.fidelity.imported or next(record for record in records if record.id == of_side)

    def compared(record: Record, fidelity: FidelityFile) -> Record:
        if record is reference:
            return record
        checks, warnings = _compared_results(record, reference, fidelity, file.seeds)
        return replace(record, fidelity=tuple(checks), warnings=(*record.warnings, *warnings))

    return tuple(compared(record, file.fidelity) for record in records)


def _compared_results(
    record: Record, reference: Record, file: FidelityFile, seeds: Sequence[int]
) -> tuple[Sequence[Fidelity], Sequence[str]]:
    """Compare a record with the reference.

    Returns:
        The comparisons, and warnings about them.
    """
    checks = [_score_fidelity(name, record, reference, limit) for name, limit in file.scores.items()]
    if file.loss_limit is None:
        return checks, ()
    losses = loss_fidelity(record, reference, seeds, file.loss_limit)
    return [losses, *checks], list(_warnings(losses, record, reference))


def _warnings(check: Fidelity, record: Record, reference: Record) -> Iterator[str]:
    if check.value == 0:
        yield "the losses equal those of the reference in every digit: was the reference compared with itself?"
    last = {seed: steps.stop for seed, steps in _counted_steps(reference, record).items() if steps}
    later = [step for seed, step in _losses(record) if step >= last.get(seed, step + 1)]
    if later:
        yield (
            f"the losses of {count(len(later), 'step')} after the last counted step of {reference.id} were not compared"
        )


def loss_fidelity(record: Record, reference: Record, seeds: Sequence[int], limit: float) -> Fidelity:
    """Compare the losses of each seed at every counted step for which the reference has a loss.

    The reference needs losses at regular intervals over all counted steps. A seed or counted step without a loss leaves
    the fidelity unmeasured. The value includes the steps of the warm-up for which both sides have a loss. One loss of
    the side that is not finite, at any step, misses the limit.
    """
    losses, of_reference, counted = _losses(record), _losses(reference), _counted_steps(reference, record)
    references = {key: loss for key, loss in of_reference.items() if key[1] in counted[key[0]]}
    shared = {
        (seed, step): _relative_difference(loss, other)
        for (seed, step), other in of_reference.items()
        if (loss := losses.get((seed, step))) is not None and other is not None and step < counted[seed].stop
    }
    not_finite = sorted((step, seed) for (seed, step), loss in losses.items() if loss is None)
    why = _same_seed(record) or _same_seed(reference) or next(_problems(losses, references, seeds, counted), None)
    if not_finite:
        step, seed = not_finite[0]
        why = f"{len(not_finite)} of {len(losses)} losses are not finite, the first at step {step} with seed {seed}"
    return judged_fidelity(
        LOSS_CURVES,
        reference.id,
        None if why else max(shared.values()),
        limit,
        compared=len(shared.keys() & references.keys()),
        expected=len(references),
        counted=sum(map(_length, counted.values())),
        not_finite=len(not_finite),
        why_null=why,
    )


def can_recompute(method: str) -> bool:
    """Whether `trn bench` makes comparisons of this method, which are computed again from both records."""
    return method == LOSS_CURVES or method.startswith(_SCORE)


def recomputed_fidelity(check: Fidelity, record: Record, reference: Record) -> Fidelity | None:
    """A comparison computed again from both records; None if `can_recompute` is false."""
    if not can_recompute(check.method):
        return None
    if check.method == LOSS_CURVES:
        # Seeds whose runs are all excluded lack losses, too.
        return loss_fidelity(record, reference, sorted({run.seed or 0 for run in reference.runs}), check.limit)
    return _score_fidelity(check.method.removeprefix(_SCORE), record, reference, check.limit)


def _relative_difference(loss: float, other: float) -> float:
    return min(abs(loss - other) / max(abs(other), _LEAST), sys.float_info.max)


def _same_seed(record: Record) -> str:
    """Why losses by seed are not those of all runs that count; empty if they are."""
    seeds = [run.seed for run in record.runs if run.excluded is None]
    return "" if len({*seeds}) == len(seeds) else f"runs of {record.id} have the same seed, or none"


def _counted_steps(reference: Record, record: Record) -> Mapping[int, range]:
    """The numbers of the counted steps by seed, of the runs of the reference that count; empty if they are unknown.

    An imported reference has losses without counted steps: those of the other record apply.
    """
    of_reference, of_record = (
        {run.seed or 0: _range(run) for run in side.runs if run.excluded is None} for side in (reference, record)
    )
    return {seed: steps or of_record.get(seed, range(0)) for seed, steps in of_reference.items()}


def _range(run: RecordedRun) -> range:
    if run.last_step is None or run.steps is None:
        return range(0)
    return range(run.last_step - run.steps + 1, run.last_step + 1)


def _length(steps: range) -> int:
    """The length, also if len() would overflow."""
    return steps.stop - steps.start


def _problems(losses: Losses, references: Losses, seeds: Sequence[int], counted: Mapping[int, range]) -> Iterator[str]:
    for seed in seeds:
        yield from _gaps(
            sorted(step for of_seed, step in references if of_seed == seed), counted.get(seed, range(0)), seed
        )
    if not seeds:
        yield "the reference has no runs"
    for (seed, step), loss in references.items():
        if loss is None:
            yield f"the loss of the reference at step {step} with seed {seed} is not finite"
        elif (seed, step) not in losses:
            yield f"the side has no loss at step {step} with seed {seed}"


def _gaps(steps: Sequence[int], counted: range, seed: int) -> Iterator[str]:
    """Why losses at these steps do not represent all counted steps of a run of the reference."""
    if not steps:
        yield f"the reference has no losses at counted steps with seed {seed}"
    elif len(steps) < min(2, _length(counted)):
        yield f"the reference has a loss at 1 of {_length(counted):,} counted steps with seed {seed}"
    else:
        interval = median_low([after - before for before, after in pairwise(steps)]) if len(steps) > 1 else 1
        ends = (counted.start - 1, *steps, counted.stop)
        for before, after in pairwise(ends):
            if after - before > interval:
                between = f"between steps {before} and {after} with seed {seed}"
                yield f"the reference has a loss every {count(interval, 'step')}, but none {between}"


def _losses(record: Record) -> Losses:
    return {
        (run.seed or 0, int(step)): loss
        for run in record.runs
        if run.excluded is None
        for step, loss in run.loss
        if step is not None
    }


def _score_fidelity(name: str, record: Record, reference: Record, limit: float) -> Fidelity:
    """Compare the means of a metric."""
    metrics = [side.metrics.get(name) for side in (record, reference)]
    values = [metric.value for metric in metrics if metric is not None and metric.value is not None]
    reasons = [
        f"{side.id} has no {name}" if metric is None else str(metric.why_null)
        for side, metric in zip((record, reference), metrics, strict=True)
        if metric is None or metric.value is None
    ]
    return judged_fidelity(
        f"{_SCORE}{name}",
        reference.id,
        None if reasons else abs(values[0] - values[1]),
        limit,
        compared=0 if reasons else 1,
        expected=1,
        why_null="; ".join(reasons) or None,
    )
