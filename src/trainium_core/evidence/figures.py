"""Numbers of records as a report shows them, and the order of records."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainium_core.evidence.metric import Metric
from trainium_core.evidence.numbers import number, words
from trainium_core.evidence.record import CPU, GPU, LAB, TRAINIUM, Record

SIDES: Mapping[str, str] = {TRAINIUM: "Trainium", GPU: "GPU", CPU: "CPU", LAB: "stand-in"}

PERFORMANCE, RECOVERY, COST = "Performance", "Recovery", "Cost"

UNIT_COST = "usd_per_million_"
"""Metrics of the cost of a million tokens or requests contain this."""

SERIES = tuple(SIDES)
"""The sides in their order. The index of a side is the number of its colour and shape in charts."""
_RECOVERING = ("recover", "restart")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A metric of a record."""

    name: str
    metric: Metric
    record: Record

    @property
    def title(self) -> str:
        return words(self.name)

    @property
    def section(self) -> str:
        if "USD" in self.metric.unit:
            return COST
        return RECOVERY if any(word in self.name for word in _RECOVERING) else PERFORMANCE

    @property
    def short(self) -> str:
        """The value without its unit, or "unknown"; `basis` then has the reason."""
        return "unknown" if self.metric.value is None else number(self.metric.value)

    @property
    def interval(self) -> str:
        return interval_text(self.metric)

    @property
    def basis(self) -> str:
        """The source of the number, or why it is unknown."""
        metric = self.metric
        if metric.value is None:
            return metric.why_null or ""
        parts = (metric.origin, metric.method, metric.source, metric.date, metric.why_null)
        return ", ".join(dict.fromkeys(part for part in parts if part))


def interval_text(metric: Metric) -> str:
    """The interval with its confidence level, or the range of the runs; empty without either."""
    if metric.low is None or metric.high is None:
        return ""
    level = "range" if metric.level is None else f"{metric.level:.0%}"
    return f"{number(metric.low)} to {number(metric.high)} ({level})"


def side_name(record: Record) -> str:
    """The side and its machines, such as "Trainium, 2 x trn2.48xlarge", or "1 x stand-in for trn2.48xlarge"."""
    machines = record.hardware.machines
    return machines if record.side == LAB else f"{SIDES[record.side]}, {machines}"


def by_side(records: Iterable[Record]) -> Sequence[Record]:
    """The records, Trainium first and the lab last, there also Trainium types first; of each side, the oldest first."""

    def order(record: Record) -> tuple[int, bool, str, str]:
        return SERIES.index(record.side), not record.hardware.has_trainium_type, record.made, record.id

    return sorted(records, key=order)
