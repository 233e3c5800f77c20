"""How close the results of a side are to those of a reference: its loss curves, and scores of other tools."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from trainium_core.evidence.bench_file import BenchFile, FidelityFile
from trainium_core.evidence.gates import Fidelity, judged_fidelity
from trainium_core.evidence.record import Record

LOSS_CURVES = "largest relative difference of the losses of a step, same seed"
_SCORE = "difference of "

_LEAST = 1e-12

Losses = Mapping[tuple[int, int], float | None]
"""Losses by seed and step; None if the loss is not finite."""


def with_fidelity(records: Sequence[Record], file: BenchFile) -> tuple[Record, ...]:
    """The records, each compared with the record of the reference, if the file names one."""
    if file.fidelity is None:
        return tuple(records)
    reference = next(record for record in records if record.id == f"{file.name}-{file.fidelity.reference}")

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
    ours, theirs = _losses(record), _losses(reference)
    losses = loss_fidelity(ours, theirs, seeds, reference.id, file.loss_limit)
    same = "the losses equal those of the reference in every digit: was the reference compared with itself?"
    return [losses, *checks], [same] if losses.value == 0 else ()


def loss_fidelity(losses: Losses, references: Losses, seeds: Sequence[int], reference: str, limit: float) -> Fidelity:
    """Compare the losses of each seed at every step for which the reference has a loss.

    One loss that is not finite misses the limit. A seed or step without a loss leaves the fidelity unmeasured.
    """
    shared = [
        (loss, other)
        for key, other in references.items()
        if (loss := losses.get(key)) is not None and other is not None
    ]
    not_finite = sorted((step, seed) for (seed, step), loss in losses.items() if loss is None)
    why = next(_problems(losses, references, seeds), None)
    if not_finite:
        step, seed = not_finite[0]
        why = f"{len(not_finite)} of {len(losses)} losses are not finite, the first at step {step} with seed {seed}"
    return judged_fidelity(
        LOSS_CURVES,
        reference,
        None if why else max(abs(loss - other) / max(abs(other), _LEAST) for loss, other in shared),
        limit,
        compared=len(shared),
        expected=len(references),
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
        ours, theirs = _losses(record), _losses(reference)
        return loss_fidelity(ours, theirs, sorted({seed for seed, _ in theirs}), reference.id, check.limit)
    return _score_fidelity(check.method.removeprefix(_SCORE), record, reference, check.limit)


def _problems(losses: Losses, references: Losses, seeds: Sequence[int]) -> Iterator[str]:
    for seed in seeds:
        if all(key[0] != seed for key in references):
            yield f"the reference has no losses with seed {seed}"
    for (seed, step), loss in references.items():
        if loss is None:
            yield f"the loss of the reference at step {step} with seed {seed} is not finite"
        elif (seed, step) not in losses:
            yield f"the side has no loss at step {step} with seed {seed}"


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
