"""Bench records as tables."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from trainium_cli.terminal import console, say, table
from trainium_core.evidence.numbers import number
from trainium_core.evidence.record import Metric, Record


def show_records(records: Sequence[Record], folder: Path) -> None:
    out = console()
    for record in records:
        hardware = record.hardware
        machines = f"{hardware.nodes} x {hardware.type}" if hardware.nodes else hardware.type
        counted = sum(run.excluded is None for run in record.runs)
        out.print(
            f"{record.id}: side {record.side}, {machines}, {counted} of {len(record.runs)} runs count", style="bold"
        )
        say("")
        rows = [(name, *_shown(metric)) for name, metric in record.metrics.items()]
        out.print(table(["Metric", "Value", "95% interval", "n"], rows, right=["Value", "n"], wrapping=["Value"]))
        gates = [*_gate_rows(record)]
        if gates:
            say("")
            out.print(table(["Gate", "Limit", "Value", "State"], gates, right=["Value"], wrapping=["Gate"]))
        for warning in record.warnings:
            out.print(f"warning: {warning}", style="yellow")
        say("")
    for line in _ratio_lines(records):
        say(line)
    say(f"Written: {', '.join(str(folder / f'{record.id}.json') for record in records)}")


def _shown(metric: Metric) -> tuple[str, str, str]:
    n = "" if metric.n is None else str(metric.n)
    if metric.value is None:
        return f"null: {metric.why_null}", "", n
    interval = "" if metric.low is None or metric.high is None else f"{number(metric.low)} to {number(metric.high)}"
    return f"{number(metric.value)} {metric.unit}", interval, n


def _gate_rows(record: Record) -> Iterator[Sequence[str]]:
    for gate in record.gates:
        yield gate.name, gate.limit, "" if gate.value is None else number(gate.value), gate.state
    for one in record.fidelity:
        limit = "" if one.limit is None else f"<= {number(one.limit)}"
        yield f"{one.method}, against {one.reference}", limit, "" if one.value is None else number(one.value), one.state


def _ratio_lines(records: Sequence[Record]) -> Iterator[str]:
    """The ratios of the first side to the others."""
    for compared in records[0].comparable if records else ():
        for name, ratio in compared.ratios.items():
            value, interval, _ = _shown(ratio)
            shown = ratio.why_null if ratio.value is None else f"{value} ({interval})" if interval else value
            yield f"{name}, {records[0].id} / {compared.against}: {shown}"
