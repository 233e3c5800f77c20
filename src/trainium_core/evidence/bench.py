"""The record of a side, such as the Trainium cluster, from its runs, and the ratios between two sides."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from trainium_core.evidence.bench_file import BenchFile, BenchSide
from trainium_core.evidence.comparability import comparable
from trainium_core.evidence.gates import judged_gate
from trainium_core.evidence.imports import Imported
from trainium_core.evidence.metric import DERIVED, FEWEST_RUNS, IMPORTED, Metric, unknown
from trainium_core.evidence.record import Comparability, Hardware, Record, RecordedRun, Software, Tool
from trainium_core.evidence.recovery import RecoveredJob, recovery_metrics
from trainium_core.evidence.statistics import PERCENTILES, runs_mean, runs_percentile, runs_ratio
from trainium_core.evidence.steps import NO_SECONDS, NO_TOKENS, TrainingStep, counted
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.record import graph_counts, restart_counts

TOKENS_PER_SECOND, STEPS_PER_SECOND = "tokens_per_second", "steps_per_second"
CORE_UTILIZATION = "core_utilization"
USD_PAID, USD_LIST = "usd_per_million_tokens_paid", "usd_per_million_tokens_list"

MOST_SAMPLES = 10_000
"""How many steps of a run a record keeps. Percentiles are those of these steps, so a reader can recompute them."""

_HOUR, _MILLION = 3600, 1e6
_RATE = "_per_second"
_COSTED = {"output_tokens_per_second": "output_tokens", "requests_per_second": "requests"}
"""What is counted by the rates of other tools whose costs are computed."""
COST_FORMULA = "USD per hour / 3600 / {} per second x 1,000,000"


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """One run.

    Attributes:
        rates: Work per second by metric, including metrics of other tools.
        imported: The results of other tools.
        why_no_rates: Why a run that counts lacks rates; empty if it has all of them.
        core_utilization: Mean of all nodes in percent, over the whole attempt; None if a node does not measure it.
    """

    run: RecordedRun
    rates: Mapping[str, float] = field(default_factory=dict[str, float])
    imported: tuple[Imported, ...] = ()
    why_no_rates: str = ""
    core_utilization: float | None = None


@dataclass(frozen=True, kw_only=True)
class SidePrices:
    """The prices of a side in US dollars per hour. None: unknown.

    Attributes:
        paid: The price of all nodes, and of what `source` says.
        list: The on-demand list price of all instances alone.
        why_unknown: Why the paid price is unknown.
        why_no_list: Why the list price is unknown. Empty: as the paid price.
    """

    paid: float | None
    list: float | None
    source: str
    date: str
    why_unknown: str = ""
    why_no_list: str = ""


def measured_run(
    state: JobState, steps: Sequence[TrainingStep], file: BenchFile, seed: int, imported: tuple[Imported, ...] = ()
) -> MeasuredRun:
    """The measurements of a job. If they do not count, the run has the reason in `excluded`."""
    return replace(_measured_run(state, steps, file, seed, imported), core_utilization=_core_utilization(state))


def _core_utilization(state: JobState) -> float | None:
    nodes = state.attempts[-1].nodes if state.attempts else ()
    means = [node.utilization.core_utilization if node.utilization else None for node in nodes]
    known = [mean for mean in means if mean is not None]
    return fmean(known) if known and len(known) == len(means) else None


def _measured_run(
    state: JobState, steps: Sequence[TrainingStep], file: BenchFile, seed: int, imported: tuple[Imported, ...]
) -> MeasuredRun:
    if reason := not_counted(state):
        return MeasuredRun(run=_run(state, (), seed, reason))
    rates = imported_rates(imported)
    if not steps and imported:
        run = _run(state, (), seed, None)
        return MeasuredRun(run=run, rates=rates, imported=imported, why_no_rates="the job prints no steps")
    counted_steps = counted(steps, file.steps, file.warmup_steps)
    if not counted_steps:
        too_few = f"it has fewer than {file.steps} steps in a row after the warm-up"
        why = too_few if steps else "it prints no progress lines"
        return MeasuredRun(run=_run(state, (), seed, why), imported=imported)
    run = _run(state, counted_steps, seed, None, losses=steps)
    no_seconds = next(_problems_with_seconds(counted_steps), None)
    if no_seconds is not None:
        return MeasuredRun(run=run, rates=rates, imported=imported, why_no_rates=no_seconds)
    seconds = [step.seconds or 0.0 for step in counted_steps]
    rates[STEPS_PER_SECOND] = sum(step.steps for step in counted_steps) / sum(seconds)
    if run.tokens is not None and run.tokens > 0:
        rates[TOKENS_PER_SECOND] = run.tokens / sum(seconds)
    is_each = all(step.steps == 1 for step in counted_steps)
    return MeasuredRun(
        run=replace(run, step_seconds=tuple(seconds[:MOST_SAMPLES])) if is_each else run,
        rates=rates,
        imported=imported,
        why_no_rates="" if TOKENS_PER_SECOND in rates else _why_no_tokens(run),
    )


def imported_rates(imported: Sequence[Imported]) -> dict[str, float]:
    """The known rates in the results of other tools."""
    return {
        name: metric.value
        for result in imported
        for name, metric in result.metrics.items()
        if name.endswith(_RATE) and metric.value is not None
    }


def usd_per_million(usd_hour: float, per_second: float) -> float:
    """The cost of a million units of work."""
    return usd_hour / _HOUR / per_second * _MILLION


def not_counted(state: JobState, *, while_running: bool = False) -> str:
    """Why a job does not count; empty if it counts or, with `while_running`, if it may count when it ends."""
    if state.outcome is None and not while_running:
        return "the job did not succeed: it has not ended"
    if state.outcome is not None and not state.outcome.is_success:
        return f"the job did not succeed: {state.outcome.reason or state.outcome.result}"
    if len(state.attempts) > 1:
        return f"it was restarted: it has {len(state.attempts)} attempts"
    # Its results may be wrong, although the command succeeded.
    nodes = (node for attempt in state.attempts for node in attempt.nodes)
    return next((f"node {node.node}: {error}" for node in nodes for error in node.device_errors), "")


def _problems_with_seconds(steps: Sequence[TrainingStep]) -> Iterator[str]:
    for step in steps:
        if step.seconds is None:
            yield NO_SECONDS
        elif step.seconds <= 0:
            yield f"step {step.number} has seconds={step.seconds:g}: it must be above 0"


def _why_no_tokens(run: RecordedRun) -> str:
    return NO_TOKENS if run.tokens is None else f"the counted steps have {run.tokens} tokens: the sum must be above 0"


def _run(
    state: JobState, steps: Sequence[TrainingStep], seed: int, excluded: str | None, losses: Sequence[TrainingStep] = ()
) -> RecordedRun:
    attempt = state.attempts[-1] if state.attempts else None
    node = attempt.nodes[0] if attempt and attempt.nodes else None
    tokens = [step.tokens for step in steps]
    observed = node.observed if node else None
    recompiled = [use.recompiled for use in node.caches] if node else []
    return RecordedRun(
        job=state.job.id,
        attempt=attempt.number if attempt else None,
        seed=seed,
        phases=_phases(state, steps),
        steps=sum(step.steps for step in steps) if steps else None,
        last_step=steps[-1].number if steps else None,
        tokens=round(sum(token or 0.0 for token in tokens)) if tokens and None not in tokens else None,
        fallback_ops=sum(observed.fallbacks.values()) if observed else None,
        recompiles=sum(recompiled) if recompiled else None,
        loss=tuple(
            (float(step.number), step.loss if math.isfinite(step.loss) else None)
            for step in losses
            if step.loss is not None
        ),
        excluded=excluded,
    )


def _phases(state: JobState, steps: Sequence[TrainingStep]) -> Mapping[str, float | None]:
    """Seconds by phase, on node 0. A first step that compiles graphs is cold; one that only loads graphs is warm."""
    node = state.attempts[-1].nodes[0] if state.attempts and state.attempts[-1].nodes else None
    phases: Mapping[str, float] = node.phases if node else {}
    compiled = graph_counts(node).get("compiled") if node else None
    first = phases.get("first_step")
    restarts = [restart.seconds for restart in restart_counts(state)]
    seconds = [step.seconds for step in steps]
    return {
        "compile_cold": first if compiled else None,
        "compile_warm": first if compiled == 0 else None,
        "data": phases.get("inputs"),
        "step": sum(value or 0.0 for value in seconds) if seconds and None not in seconds else None,
        "checkpoint": phases.get("checkpoints"),
        "restart": sum(restart or 0.0 for restart in restarts) if restarts and None not in restarts else None,
    }


def side_record(
    file: BenchFile,
    side: BenchSide,
    runs: Sequence[MeasuredRun],
    *,
    hardware_kind: str,
    hardware: Hardware,
    software: Software,
    prices: SidePrices,
    command: str,
    made: str,
    tool: Tool,
    recovered: RecoveredJob | None = None,
    warnings: tuple[str, ...] = (),
) -> Record:
    """The record of a side.

    Args:
        file: The file of `trn bench`.
        side: The side in it.
        runs: Its runs, including those that do not count.
        hardware_kind: The kind of hardware: TRAINIUM, GPU, CPU or LAB.
        hardware: The machines.
        software: The versions on them.
        prices: Their prices.
        command: The command of the jobs.
        made: When the record is made, as an ISO time.
        tool: The version of this package.
        recovered: The job that lost a node, if one was measured.
        warnings: Warnings about the measurement.
    """
    metrics = {**dict(run_metrics(runs, prices)), **dict(recovery_metrics(recovered))}
    workload = replace(
        file.measured_workload,
        command=command,
        tuned=side.tuned,
        precision=side.precision or file.workload.precision,
        parallelism=side.parallelism,
    )
    imported = [note for run in runs for result in run.imported for note in result.warnings]
    excluded = [
        f"run {run.job} is excluded: {run.excluded}" for run in (measured.run for measured in runs) if run.excluded
    ]
    return Record(
        kind="bench",
        id=f"{file.name}-{side.name}",
        made=made,
        tool=tool,
        side=hardware_kind,
        workload=workload,
        hardware=hardware,
        software=software,
        runs=tuple(measured.run for measured in runs),
        metrics=metrics,
        gates=tuple(judged_gate(name, limit, metrics.get(name)) for name, limit in file.gates.items()),
        inputs=(file.source,),
        warnings=(*warnings, *excluded, *dict.fromkeys(imported)),
    )


def run_metrics(runs: Sequence[MeasuredRun], prices: SidePrices) -> Iterator[tuple[str, Metric]]:
    """The metrics over the runs that count."""
    used = [measured for measured in runs if measured.run.excluded is None]
    few = f"{len(used)} of {len(runs)} runs count: at least {FEWEST_RUNS} are needed"
    has_steps = any(measured.run.steps for measured in used) or not any(run.imported for run in used)
    if has_steps:
        for name, unit in ((TOKENS_PER_SECOND, "tokens/s"), (STEPS_PER_SECOND, "steps/s")):
            values = [run.rates[name] for run in used if name in run.rates]
            is_known = len(values) == len(used) and used
            yield name, runs_mean(values, unit) if is_known else unknown(unit, _why_unknown(name, used, few))
        samples = [run.run.step_seconds for run in used]
        no_samples = _why_unknown(STEPS_PER_SECOND, used, "a progress line reports several steps" if used else few)
        for quantile in PERCENTILES:
            is_known = samples and all(samples)
            yield (
                f"step_seconds_p{100 * quantile:g}",
                runs_percentile(samples, quantile, "s") if is_known else unknown("s", no_samples),
            )
        yield from _costs(TOKENS_PER_SECOND, used, prices, _why_unknown(TOKENS_PER_SECOND, used, few))
    if busy := [run.core_utilization for run in used if run.core_utilization is not None]:
        some = unknown("%", f"{len(busy)} of {len(used)} runs have it", n=len(busy))
        yield CORE_UTILIZATION, runs_mean(busy, "%") if len(busy) == len(used) else some
    yield from _imported(used)
    for rate in sorted({name for run in used for name in run.rates if name.rpartition(".")[2] in _COSTED}):
        yield from _costs(rate, used, prices, f"not all runs have {rate} above 0")


def _why_unknown(rate: str, runs: Iterable[MeasuredRun], default: str) -> str:
    """The reason of the first run that lacks the rate; the default if no run has a reason."""
    return next((run.why_no_rates for run in runs if rate not in run.rates and run.why_no_rates), default)


def _cost_names(rate: str) -> tuple[str, str]:
    """The names of the cost metrics of a token rate: as paid, and by list price."""
    if rate == TOKENS_PER_SECOND:
        return USD_PAID, USD_LIST
    file, dot, name = rate.rpartition(".")
    prefix = f"{file}{dot}usd_per_million_{_COSTED[name]}"
    return f"{prefix}_paid", f"{prefix}_list"


def _costs(rate: str, runs: Sequence[MeasuredRun], prices: SidePrices, why: str) -> Iterator[tuple[str, Metric]]:
    counted_work = _COSTED.get(rate.rpartition(".")[2], "tokens").replace("_", " ")
    unit = f"USD per million {counted_work}"
    rates = [run.rates[rate] for run in runs if run.rates.get(rate)]
    whys = (prices.why_unknown, prices.why_no_list or prices.why_unknown)
    for name, usd, no_price in zip(_cost_names(rate), (prices.paid, prices.list), whys, strict=True):
        if usd is None:
            yield name, unknown(unit, no_price or "the price is unknown")
        elif len(rates) < len(runs) or not rates:
            yield name, unknown(unit, why)
        else:
            metric = runs_mean([usd_per_million(usd, value) for value in rates], unit)
            of_price = {"source": prices.source, "date": prices.date}
            known = replace(
                metric, origin=DERIVED, method=f"{COST_FORMULA.format(counted_work)}; {metric.method}", **of_price
            )
            yield name, metric if metric.value is None else known


def _imported(runs: Sequence[MeasuredRun]) -> Iterator[tuple[str, Metric]]:
    """The mean over the runs of each metric that other tools measured."""
    by_run = [{name: metric for result in run.imported for name, metric in result.metrics.items()} for run in runs]
    for name in dict.fromkeys(name for metrics in by_run for name in metrics):
        metrics = [of_run[name] for of_run in by_run if name in of_run]
        first = metrics[0]
        lacking = next((metric.why_null for metric in metrics if metric.value is None), None)
        if lacking or len(metrics) < len(by_run):
            yield name, unknown(first.unit, lacking or f"{len(metrics)} of {len(by_run)} runs have it", n=first.n)
            continue
        mean = runs_mean([metric.value or 0.0 for metric in metrics], first.unit)
        if mean.value is None:
            yield name, mean
            continue
        # Runs that evaluate the same samples have the same error, which their differences do not show.
        lows = [metric.low for metric in metrics if metric.low is not None]
        highs = [metric.high for metric in metrics if metric.high is not None]
        if len(lows) == len(highs) == len(metrics) and None not in (mean.low, mean.high):
            mean = replace(mean, low=min(mean.low or 0.0, fmean(lows)), high=max(mean.high or 0.0, fmean(highs)))
        yield name, replace(mean, origin=IMPORTED, source=first.source)


def with_ratios(records: Sequence[Record], runs: Mapping[str, Sequence[MeasuredRun]]) -> tuple[Record, ...]:
    """The records, each compared with every other.

    Args:
        records: A record of each side.
        runs: The runs by the ID of the record.
    """
    return tuple(
        replace(
            record,
            comparable=tuple(
                _compared(record, other, runs[record.id], runs[other.id]) for other in records if other is not record
            ),
        )
        for record in records
    )


def _compared(
    record: Record, other: Record, runs: Sequence[MeasuredRun], others: Sequence[MeasuredRun]
) -> Comparability:
    comparison = comparable(record, other, of_cost=False)
    comparison_of_cost = comparable(record, other)
    rates = {name for name in record.metrics if name.endswith(_RATE)}
    costed = {rate for rate in rates if rate == TOKENS_PER_SECOND or rate.rpartition(".")[2] in _COSTED}
    costs = {name: rate for rate in costed for name in _cost_names(rate)}
    ratios: dict[str, Metric] = {}
    for name, rate in sorted(({rate: rate for rate in rates} | costs).items()):
        metrics = [side.metrics[name] for side in (record, other) if name in side.metrics]
        null = next((metric.why_null for metric in metrics if metric.value is None), None)
        applicable = comparison_of_cost if name.endswith("_paid") else comparison
        if len(metrics) < 2:
            continue
        if not applicable.comparable or null is not None:
            ratios[name] = unknown(
                "ratio", (null or "a side has no value") if applicable.comparable else applicable.verdict
            )
            continue
        ours, theirs = (_values(side, name, rate, its) for side, its in ((record, runs), (other, others)))
        ratios[name] = runs_ratio(ours, theirs, f"{name} of {record.id} / {name} of {other.id}")
    return replace(comparison, ratios=ratios)


def _values(record: Record, name: str, rate: str, runs: Sequence[MeasuredRun]) -> list[float]:
    """One value per run. The cost of a run is proportional to its seconds per token."""
    rates = [measured.rates[rate] for measured in runs if measured.run.excluded is None]
    if rate == name:
        return rates
    mean = record.metrics[name].value or 0.0
    inverse = [1 / value for value in rates]
    return [mean * seconds / fmean(inverse) for seconds in inverse]
