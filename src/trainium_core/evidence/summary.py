"""The first lines of a report: the runs, what Trainium costs and does beside the GPU, what it saves, what is open."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from trainium_core.evidence.bench import TOKENS_PER_SECOND
from trainium_core.evidence.comparability import imported_from
from trainium_core.evidence.figures import SIDES, UNIT_COST, by_side, interval_text, side_name
from trainium_core.evidence.folder import Evidence, questions
from trainium_core.evidence.metric import Metric
from trainium_core.evidence.numbers import number, words
from trainium_core.evidence.record import BENCH, CPU, GPU, LAB, TCO, TRAINIUM, Record
from trainium_core.evidence.tco import BREAK_EVEN, SAVING, SWING
from trainium_core.facts import facts
from trainium_core.plurals import count

_NOT_MEASURED = "not measured"
_MOST_MACHINES, _MOST_EXCLUDED = 4, 2
_ON = {**SIDES, GPU: "GPUs", CPU: "CPUs", LAB: "stand-ins"}


@dataclass(frozen=True, kw_only=True)
class KeyResult:
    """The answer to a question of the first screen.

    Attributes:
        text: The answer in a few words.
        details: The numbers behind it, with their intervals, or why there is no answer.
    """

    title: str
    text: str
    details: tuple[str, ...] = ()


def key_results(evidence: Evidence) -> Sequence[KeyResult]:
    """The answers, from the newest record of Trainium and records of the same workload.

    If there are records of other workloads, the details begin with the name of this one.
    """
    records = list(evidence.records.values())
    ours = _newest(record for record in records if record.kind == BENCH and record.side == TRAINIUM)
    gpus = [record for record in records if record.kind == BENCH and record.side == GPU]
    theirs = [record for record in gpus if ours is not None and record.workload.name == ours.workload.name]
    years = [record for record in records if record.kind == TCO]
    year = [record for record in years if ours is None or record.workload.name == ours.workload.name]
    results = (*_costs(ours, theirs), _throughput(ours, theirs), *_year(year))
    if ours is not None and len({record.workload.name for record in records}) > 1:
        name = f"workload {ours.workload.name}"
        results = tuple(replace(result, details=(name, *result.details)) for result in results)
    return (_runs(by_side(record for record in records if record.kind == BENCH)), *results, _contract(evidence))


def _newest(records: Iterator[Record]) -> Record | None:
    return max(records, key=lambda record: record.made, default=None)


def _costs(ours: Record | None, theirs: Sequence[Record]) -> Iterator[KeyResult]:
    """The cost of each kind of work, such as a million tokens; of several files of other tools, the lowest."""
    metrics: Mapping[str, Metric] = ours.metrics if ours else {}
    work = dict.fromkeys(
        name.partition(UNIT_COST)[2].rpartition("_")[0]
        for name, metric in metrics.items()
        if UNIT_COST in name and metric.value
    )
    for kind in work or ("tokens",):
        names = [name for name in metrics if name.endswith((f"{UNIT_COST}{kind}_paid", f"{UNIT_COST}{kind}_list"))]
        paid = [name for name in names if name.endswith("_paid")]
        ratios = {name: _ratio(ours, _beside(ours, theirs, name), name) for name in names}
        with_ratio = [name for name in (*paid, *names) if _is_known(ratios[name])]
        candidates = [name for name in with_ratio or paid or names if _is_known(metrics[name])]
        title = f"Cost per million {kind.replace('_', ' ')}"
        if not candidates:
            why = next((metrics[name].why_null for name in names if metrics[name].why_null), None)
            yield KeyResult(title=title, text=_NOT_MEASURED, details=(why or _no_trainium(ours),))
            continue
        basis = candidates[0].rpartition("_")[2]
        same_basis = [name for name in candidates if name.endswith(basis)]
        name = min(same_basis, key=lambda name: metrics[name].value or 0.0)
        title += ", list price" if basis == "list" else ", as paid"
        yield _compared(title, ours, theirs, name, name.partition(UNIT_COST)[0].removesuffix("."))


def _throughput(ours: Record | None, theirs: Sequence[Record]) -> KeyResult:
    metrics: Mapping[str, Metric] = ours.metrics if ours else {}
    rates = [name for name in metrics if name.endswith("_per_second")]
    name = TOKENS_PER_SECOND if TOKENS_PER_SECOND in rates or not rates else rates[0]
    title = words(name).capitalize()
    if name not in metrics or metrics[name].value is None:
        why = metrics[name].why_null if name in metrics else None
        return KeyResult(title=title, text=_NOT_MEASURED, details=(why or _no_trainium(ours),))
    return _compared(title, ours, theirs, name)


def _no_trainium(ours: Record | None) -> str:
    return "nothing was measured on Trainium" if ours is None else "the results have no price or rate"


def _is_known(metric: Metric | None) -> bool:
    return metric is not None and metric.value is not None


def _ratio(ours: Record | None, theirs: Record | None, name: str) -> Metric | None:
    if ours is None or theirs is None:
        return None
    return next((compared.ratios.get(name) for compared in ours.comparable if compared.against == theirs.id), None)


def _beside(ours: Record | None, theirs: Sequence[Record], name: str) -> Record | None:
    """The newest record with a ratio for a metric; without a ratio, the newest with the metric, else the newest."""

    def rank(record: Record) -> tuple[bool, bool, str]:
        return _is_known(_ratio(ours, record, name)), _is_known(record.metrics.get(name)), record.made

    return max(theirs, key=rank, default=None)


def _compared(title: str, ours: Record | None, others: Sequence[Record], name: str, source: str = "") -> KeyResult:
    """The value of Trainium; with a known ratio, its share of the GPU's."""
    assert ours is not None, "a record of Trainium has the metric"
    theirs = _beside(ours, others, name)
    metric, ratio = ours.metrics[name], _ratio(ours, theirs, name)
    text = _amount(metric)
    details = [source] if source else []
    if ratio is not None and ratio.value is not None:
        text = f"{_percent(ratio.value)} of the GPU"
        details.append(_share_interval(ratio))
    details.append(f"{side_name(ours)}: {_detail(ours, name)}")
    details.append(f"{side_name(theirs) if theirs else 'GPU'}: {_detail(theirs, name)}")
    if theirs is not None and not _is_known(ratio):
        details.append(f"no ratio: {(ratio.why_null if ratio else None) or f'{theirs.id} has no such number'}")
    return KeyResult(title=title, text=text, details=tuple(details))


def _share_interval(ratio: Metric) -> str:
    """The interval of a ratio in percent, or why it has none."""
    if ratio.low is None or ratio.high is None:
        return f"no interval: {ratio.why_null}" if ratio.why_null else "no interval"
    kind = f"{ratio.level:.0%} interval" if ratio.level else "from the ends of both intervals"
    return f"{_percent(ratio.low)} to {_percent(ratio.high)} ({kind})"


def _amount(metric: Metric) -> str:
    return f"{number(metric.value or 0.0)} {'USD' if metric.unit.startswith('USD') else metric.unit}"


def _detail(record: Record | None, name: str) -> str:
    """The value with its interval and, of a cost, the purchase option."""
    if record is None:
        return _NOT_MEASURED
    metric = record.metrics.get(name)
    if metric is None or metric.value is None:
        return _NOT_MEASURED
    option = record.hardware.purchase if UNIT_COST in name and name.endswith("_paid") else None
    return ", ".join(filter(None, (_amount(metric), interval_text(metric), option, imported_from(record, name))))


def _percent(share: float) -> str:
    return f"{number(round(share * 100, 1))} %"


def _year(records: Sequence[Record]) -> Iterator[KeyResult]:
    """Saving and break-even of the newest record of `trn tco` about Trainium."""
    record = _newest(record for record in records if record.side == TRAINIUM)
    metrics: Mapping[str, Metric] = record.metrics if record else {}
    saving, even = metrics.get(SAVING), metrics.get(BREAK_EVEN)
    title = "Saving in twelve months"
    if saving is None or saving.value is None:
        why = (saving.why_null if saving else None) or _no_year(records)
        yield KeyResult(title=title, text="unknown", details=(why,))
    else:
        amount = f"{number(abs(saving.value))} USD"
        interval = interval_text(saving)
        _, separator, options = (saving.method or "").partition("purchase options: ")
        ends = f"{interval.removesuffix(' (range)')}, by the intervals of both throughputs"
        details = (
            ends if interval else saving.why_null or "no range",
            *_assumptions(metrics),
            *([options] if separator else []),
        )
        yield KeyResult(title=title, text=amount if saving.value >= 0 else f"none: {amount} more", details=details)
    if even is None or even.value is None:
        why = (even.why_null if even else None) or _no_year(records)
        text, _, reason = why.partition(": ")
        is_answer = text in ("never", "none")
        details = (reason if is_answer else why,)
        yield KeyResult(title="Break-even", text=text if is_answer else "unknown", details=details)
    else:
        details = (even.method,) if even.method else ()
        yield KeyResult(title="Break-even", text=f"after {number(even.value)} h", details=details)


def _assumptions(metrics: Mapping[str, Metric]) -> Iterator[str]:
    """The lowest and the highest saving with one input at an end of its range."""
    swings = {name: metric for name, metric in metrics.items() if name.startswith(SWING) and metric.value is not None}
    if swings:
        ends = sorted(swings, key=lambda name: swings[name].value or 0.0)
        lowest, highest = (_assumption(name, swings[name]) for name in (ends[0], ends[-1]))
        yield f"one input at an end of its range: {lowest} to {highest}"


def _assumption(name: str, swing: Metric) -> str:
    label = name.removeprefix(SWING).rpartition(": ")[0]
    return f"{number(swing.value or 0.0)} ({label} {(swing.method or '').partition(' with ')[2]})"


def _no_year(records: Sequence[Record]) -> str:
    """Why no record of `trn tco` has a saving of Trainium."""
    if not records:
        return "trn tco has not computed the costs"
    if any(record.side == TRAINIUM for record in records):
        if any(SAVING in record.metrics for record in records):
            return "trn tco has computed the saving of another side: in its file, state the Trainium side first"
        return "trn tco has computed the costs of one side only"
    sides = " and ".join(dict.fromkeys(_ON[record.side] for record in records))
    return f"trn tco has no costs of Trainium, only of {sides}"


def _contract(evidence: Evidence) -> KeyResult:
    unanswered = [row["title"] for key, row in questions().items() if key not in evidence.answers]
    total = len(questions())
    text = f"{len(unanswered)} of {total} unanswered" if unanswered else "all answered"
    details = (", ".join(unanswered).capitalize(),) if unanswered else ()
    return KeyResult(title="Contract", text=text, details=details)


def _runs(records: Sequence[Record]) -> KeyResult:
    """How many runs count, on which machines, and why others do not."""
    counted = {
        side: sum(_counted(record) for record in records if record.side == side)
        for side in SIDES
        if side == TRAINIUM or any(record.side == side for record in records)
    }
    details = [_runs_detail(record) for record in records[:_MOST_MACHINES]]
    if len(records) > _MOST_MACHINES:
        details.append(f"{len(records) - _MOST_MACHINES} more results files, see below")
    excluded = [run for record in records for run in record.runs if run.excluded]
    details += [f"{run.job or 'a run'} does not count: {run.excluded}" for run in excluded[:_MOST_EXCLUDED]]
    if len(excluded) > _MOST_EXCLUDED:
        details.append(f"{len(excluded) - _MOST_EXCLUDED} more do not count, see below")
    text = ", ".join(f"{runs or 'none'} on {_ON[side]}" for side, runs in counted.items())
    return KeyResult(title="Runs", text=text, details=tuple(details))


def _counted(record: Record) -> int:
    return sum(run.excluded is None for run in record.runs)


def _runs_detail(record: Record) -> str:
    runs = count(_counted(record), "run") if record.runs else "no run: numbers from elsewhere"
    place = "on local CPUs" if record.side == LAB else record.hardware.region
    return ", ".join(filter(None, (f"{side_name(record)}: {runs}", place, record.made[:10])))


def aws_claim(results: Sequence[KeyResult]) -> str:
    """AWS's own statement on price performance beside the measured cost."""
    claim = facts()["price_performance_claim"]
    cost = next(result for result in results if result.title.startswith("Cost"))
    measured = f"{cost.title}, measured here: {cost.text}"
    if cost.text == _NOT_MEASURED:
        measured = f"{cost.title} was not measured in this pilot"
    return f"{measured}. Of its own comparison, AWS states {claim['text']} ({claim['source']}, {claim['date']})."
