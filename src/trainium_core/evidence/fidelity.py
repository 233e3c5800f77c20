"""How close the results of a side are to those of a reference: its loss curves, and scores of other tools."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from trainium_core.evidence.bench_file import BenchFile, FidelityFile
from trainium_core.evidence.gates import Fidelity, judged_fidelity
from trainium_core.evidence.loss_curves import length, loss_problems, losses_by_step, needed_steps
from trainium_core.evidence.record import Record
from trainium_core.plurals import count

LOSS_CURVES = "largest relative difference of the losses of a step, same seed"
_SCORE = "difference of "

_LEAST = 1e-12


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
    return [losses, *checks], list(_warnings(losses, record, reference, seeds))


def _warnings(check: Fidelity, record: Record, reference: Record, seeds: Sequence[int]) -> Iterator[str]:
    if check.value == 0:
        yield "the losses equal those of the reference in every digit: was the reference compared with itself?"
    needed = needed_steps(reference.runs, record.workload, seeds)
    last = {seed: steps.stop - 1 for seed, steps in needed.items()}
    for seed, step in losses_by_step(reference.runs, seeds):
        last[seed] = max(last[seed], step)
    runs = [
        (run.last_step, run.steps, last[run.seed]) for run in record.runs if run.excluded is None and run.seed in last
    ]
    later = sum(min(own, max(0, end - covered)) for end, own, covered in runs if end is not None and own is not None)
    if later:
        total = count(sum(own or 0 for _, own, _ in runs), "measured step")
        yield f"{later:,} of {total} come after the last loss of {reference.id}, and were not compared with it"


def loss_fidelity(record: Record, reference: Record, seeds: Sequence[int], limit: float) -> Fidelity:
    """Compare the losses of each seed at every step for which both sides have a loss.

    The reference needs losses as `reference_problems` says, and the side needs a loss at each of these steps; else the
    fidelity is not measured. One loss of the side that is not finite, at any step, misses the limit.
    """
    losses, of_reference = losses_by_step(record.runs, seeds), losses_by_step(reference.runs, seeds)
    counted = needed_steps(reference.runs, record.workload, seeds)
    references = [(seed, step) for seed, step in of_reference if step in counted[seed]]
    differences = [
        _relative_difference(loss, other)
        for key, other in of_reference.items()
        if (loss := losses.get(key)) is not None and other is not None
    ]
    why = next(loss_problems(record.runs, reference.runs, record.workload, seeds), None)
    not_finite = sorted((step, seed) for (seed, step), loss in losses.items() if loss is None)
    if not_finite:
        step, seed = not_finite[0]
        why = f"{len(not_finite)} of {len(losses)} losses are not finite, the first at step {step} with seed {seed}"
    return judged_fidelity(
        LOSS_CURVES,
        reference.id,
        None if why else max(differences),
        limit,
        compared=sum(losses.get(key) is not None and of_reference[key] is not None for key in references),
        expected=len(references),
        counted=sum(map(length, counted.values())),
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
        seeds = {run.seed for run in record.runs if run.seed is not None}
        return loss_fidelity(record, reference, sorted(seeds), check.limit)
    return _score_fidelity(check.method.removeprefix(_SCORE), record, reference, check.limit)


def _relative_difference(loss: float, other: float) -> float:
    return min(abs(loss - other) / max(abs(other), _LEAST), sys.float_info.max)


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
