"""Twelve months of one workload: the cost of each side, when a port pays off, and what the result depends on.

Every amount is computed from drivers: numbers with a source, some of them with a range. An unknown driver makes every
dependent amount unknown. Without a measured throughput, almost everything is unknown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from trainium_core.costs.estimate import Estimate
from trainium_core.evidence.comparability import comparable
from trainium_core.evidence.metric import DERIVED, QUOTED, Metric, unknown
from trainium_core.evidence.numbers import number
from trainium_core.evidence.record import LAB, Comparability, Input, Record, Tool
from trainium_core.evidence.tco_file import TcoFile
from trainium_core.evidence.tco_side import (
    MONTHS,
    SECONDS_PER_HOUR,
    WORK,
    Driver,
    SideCost,
    TcoError,
    TcoLine,
    Values,
    side_cost,
    stated_driver,
)
from trainium_core.facts import facts

LINE, SWING, THROUGHPUT = "line: ", "swing: ", "throughput: "
"""Prefixes of metrics in a record: of a line, of the result at the low or high value of a driver, and of the metric of
the bench record that counts work per second."""
TOTAL, SAVING, BREAK_EVEN = "total", "saving", "break_even_hours"
TCO_PREFIX = "tco-"
"""The ID of a record is this and the ID of its bench record."""

_CENT = 0.01
_LONGEST_HOURS = 1e15


@dataclass(frozen=True, kw_only=True)
class Swing:
    """The result at the low and high value of one driver, with the others unchanged."""

    driver: Driver
    at_low: float
    at_high: float


@dataclass(frozen=True, kw_only=True)
class Tco:
    """The costs of twelve months.

    Attributes:
        sides: The first side is the subject of the pilot.
        comparison: Whether the records of two sides can be compared; None with one side.
        metric: The metric that counts work per second.
    """

    sides: tuple[SideCost, ...]
    comparison: Comparability | None
    metric: str

    @property
    def drivers(self) -> Mapping[str, Driver]:
        return {key: driver for side in self.sides for key, driver in side.drivers.items()}

    @property
    def can_compare(self) -> bool:
        return self.comparison is not None and self.comparison.comparable

    @property
    def result_name(self) -> str:
        """The metric of the sensitivity analysis."""
        return SAVING if self.can_compare else TOTAL

    def result(self, values: Values) -> float | None:
        """The saving of the first side; without a comparable other side, its cost. None if it is unknown."""
        first = self.sides[0].total(values)
        if not self.can_compare:
            return first
        other = self.sides[1].total(values)
        return None if first is None or other is None else other - first

    @cached_property
    def values(self) -> Values:
        return {key: value for side in self.sides for key, value in side.values.items()}

    @property
    def saving(self) -> Metric:
        if self.comparison is None:
            return unknown("USD", "the file has one side")
        if not self.can_compare:
            return unknown("USD", self.comparison.verdict)
        saved = self.result(self.values)
        if saved is None:
            return unknown("USD", "the total of a side is unknown")
        first, other = self.sides
        low, high = self._saving_range
        formula = f"total of {other.name} - total of {first.name}"
        ends = "range: at the ends of the intervals of both throughputs"
        return Metric(
            value=saved,
            unit="USD",
            low=low,
            high=high,
            method="; ".join(filter(None, (formula, "" if low is None else ends, self.different_options))),
            origin=DERIVED,
            why_null=self._why_no_range if low is None else None,
        )

    @property
    def _saving_range(self) -> tuple[float, float] | tuple[None, None]:
        """The saving if the throughputs are at the worst and at the best end of their intervals for the first side."""
        throughputs = [self.drivers[side.key("throughput")] for side in self.sides]
        found = list[float | None]()
        for first, other in (("low", "high"), ("high", "low")):
            ends = {driver.key: getattr(driver, end) for driver, end in zip(throughputs, (first, other), strict=True)}
            found.append(None if None in ends.values() else self.result({**self.values, **ends}))
        low, high = found
        return (None, None) if low is None or high is None else (low, high)

    @property
    def _why_no_range(self) -> str:
        reasons = list(self.unbounded) or ["the saving has no range: a throughput has no interval"]
        return "; ".join(reasons)

    @property
    def unbounded(self) -> Iterator[str]:
        """A sentence for each throughput whose interval reaches 0, so that the cost has no upper end."""
        for side in self.sides:
            driver = self.drivers[side.key("throughput")]
            if driver.low is not None and driver.high is not None and driver.low <= 0:
                interval = f"{number(driver.low)} to {number(driver.high)} {driver.unit}"
                yield f"the interval of {driver.label}, {interval}, reaches 0, so the cost has no upper end"

    @property
    def different_options(self) -> str:
        """The purchase options of the sides, if they differ; else empty."""
        if len({side.options for side in self.sides}) < 2:
            return ""
        return "purchase options: " + "; ".join(f"{side.name}: {', '.join(side.options)}" for side in self.sides)

    @property
    def break_even(self) -> Metric:
        """Hours of work of the first side's cluster after which its port has paid off."""
        saved = self.saving
        if saved.value is None:
            return unknown("h", str(saved.why_null))
        first, other = self.sides
        ported = first.known(self.values, once=True) - other.known(self.values, once=True)
        yearly = other.known(self.values, once=False) - first.known(self.values, once=False)
        return break_even(ported, yearly, self.values[WORK] / self.values[first.key("throughput")], first.name)

    @property
    def swings(self) -> Sequence[Swing]:
        """The swing of every driver with a range, the largest first."""
        swings = list[Swing]()
        for driver in self.drivers.values():
            if driver.value is None or (driver.low is None and driver.high is None):
                continue
            ends = [driver.value if end is None else end for end in (driver.low, driver.high)]
            low, high = (self.result({**self.values, driver.key: end}) for end in ends)
            if low is not None and high is not None:
                ranged = replace(driver, low=ends[0], high=ends[1])
                swings.append(Swing(driver=ranged, at_low=low, at_high=high))
        return sorted(swings, key=lambda swing: (-abs(swing.at_high - swing.at_low), swing.driver.key))


def break_even(ported: float, yearly: float, seconds: float, name: str) -> Metric:
    """Hours of work of a side's cluster after which its port has paid off.

    Args:
        ported: How much more its engineering costs than that of the other side, in US dollars.
        yearly: How much less its year of work costs, apart from engineering.
        seconds: The seconds of work in that year.
        name: The name of the side.
    """
    hours = seconds / SECONDS_PER_HOUR
    if ported <= 0 <= yearly + _CENT:
        return Metric(value=0.0, unit="h", method="engineering costs no more than on the other side", origin=DERIVED)
    if ported < 0 and yearly <= -_CENT:
        until = f"{name} costs less only for the first {number(ported / yearly * hours)} h of work"
        return unknown("h", f"none: {until}, because its engineering costs less and its year of work costs more")
    if yearly < _CENT:
        more = f"costs {number(-yearly)} USD more" if yearly <= -_CENT else "does not cost less"
        return unknown("h", f"never: apart from engineering, a year of work {more} on {name}")
    formula = (
        f"{number(ported)} USD of engineering / {number(yearly)} USD saved a year apart from engineering "
        f"x {number(hours)} h of work a year on {name}"
    )
    paid_after = ported / yearly * hours
    if paid_after > _LONGEST_HOURS:
        return unknown("h", f"never: only after more than {_LONGEST_HOURS:.0e} h of work on {name}")
    return Metric(value=paid_after, unit="h", method=formula, origin=DERIVED)


def tco(file: TcoFile, records: Sequence[Record], estimates: Sequence[Estimate | None]) -> Tco:
    """The costs of twelve months.

    Args:
        file: The statements about the work and the sides.
        records: The bench record of each side.
        estimates: The estimate of the plan of each side; None for a side without a plan.

    Raises:
        TcoError: The file contradicts a record or an estimate, or its metric does not count work per second.
    """
    unit = _unit(file.metric, records)
    work = stated_driver(WORK, f"work in twelve months, {unit}", unit, file.work, "")
    sides = tuple(
        side_cost(side, record, estimate, file.metric, work)
        for side, record, estimate in zip(file.sides, records, estimates, strict=True)
    )
    # The price of each side is in its lines, with the purchase option.
    comparison = comparable(records[0], records[1], of_cost=False) if len(sides) == 2 else None
    return Tco(sides=sides, comparison=comparison, metric=file.metric)


def tco_records(costs: Tco, *, made: str, tool: Tool, inputs: Sequence[Input]) -> Iterator[Record]:
    """A record for each side. The first one also has the comparison with the other, and the swings."""
    for at, side in enumerate(costs.sides):
        metrics = {f"{LINE}{line.name}": _line_metric(side, line) for line in side.lines}
        metrics |= {TOTAL: total_metric(side), WORK: _work_metric(side), **_throughput_metric(side, costs.metric)}
        compared = costs.comparison if at == 0 else None
        if compared is not None:
            metrics |= {SAVING: costs.saving, BREAK_EVEN: costs.break_even}
        if at == 0:
            metrics |= dict(_swing_metrics(costs))
        yield Record(
            kind="tco",
            id=f"{TCO_PREFIX}{side.record.id}",
            made=made,
            tool=tool,
            side=side.record.side,
            workload=side.record.workload,
            hardware=side.record.hardware,
            software=side.record.software,
            metrics=metrics,
            comparable=(replace(compared, against=f"{TCO_PREFIX}{compared.against}"),) if compared else (),
            inputs=tuple(inputs),
            warnings=tuple(tco_warnings(costs)),
        )


def tco_warnings(costs: Tco) -> Iterator[str]:
    """Warnings about the totals."""
    for side in costs.sides:
        if side.record.side == LAB:
            yield f"{side.name} was measured on a stand-in: it says nothing about Trainium or a GPU"
        clusters = (side.amount(side.hours, side.values) or 0) / (facts()["billing"]["hours_per_month"] * MONTHS)
        if clusters > 1:
            yield (
                f"{side.name} needs {clusters:.1f} clusters at the same time: lines that do not depend on hours are "
                "those of one cluster"
            )
    yield from costs.unbounded


def total_metric(side: SideCost) -> Metric:
    """The total of a side. If lines are unknown, it has no value, and the reason names them."""
    total = side.total(side.values)
    if total is None:
        return unknown(
            "USD", f"at least {number(side.known(side.values))} USD; unknown: {', '.join(side.unknown_lines)}"
        )
    return Metric(value=total, unit="USD", method="sum of the lines", origin=DERIVED)


def _work_metric(side: SideCost) -> Metric:
    work = side.drivers[WORK]
    return Metric(value=work.value, unit=work.unit, origin=QUOTED, source=work.source, date=work.date)


def _throughput_metric(side: SideCost, name: str) -> Mapping[str, Metric]:
    """The throughput of the side as in its bench record; empty if it is unknown."""
    known = side.drivers[side.key("throughput")].value is not None
    return {f"{THROUGHPUT}{name}": side.record.metrics[name]} if known else {}


def _line_metric(side: SideCost, line: TcoLine) -> Metric:
    amount = side.amount(line, side.values)
    if amount is None:
        return unknown("USD", side.why_unknown(line))
    used = [side.drivers[key] for key in line.uses]
    if len(used) == 1 and used[0].unit == "USD" and used[0].date:
        return Metric(value=amount, unit="USD", origin=QUOTED, source=used[0].source, date=used[0].date)
    sources = dict.fromkeys(f"{driver.source}, {driver.date}" if driver.date else driver.source for driver in used)
    return Metric(
        value=amount, unit="USD", method=line.formula, origin=DERIVED, source="; ".join(filter(None, sources))
    )


def _swing_metrics(costs: Tco) -> Iterator[tuple[str, Metric]]:
    for swing in costs.swings:
        driver = swing.driver
        for end, value, result in (("low", driver.low, swing.at_low), ("high", driver.high, swing.at_high)):
            method = f"{costs.result_name} with {number(value or 0.0)} {driver.unit}".rstrip()
            yield (
                f"{SWING}{driver.label}: {end}",
                Metric(value=result, unit="USD", method=method, origin=DERIVED, source=driver.source),
            )


def _unit(metric: str, records: Sequence[Record]) -> str:
    """The unit that the metric counts per second. Raises TcoError for another unit, or for several."""
    units = {record.metrics[metric].unit for record in records if metric in record.metrics}
    if len(units) > 1:
        raise TcoError(f"{metric} has the units {' and '.join(sorted(units))}")
    unit = units.pop() if units else f"{metric.removesuffix('_per_second')}/s"
    if not unit.endswith("/s"):
        raise TcoError(f"{metric} is in {unit}: the metric must count work per second, such as tokens/s")
    return unit.removesuffix("/s")
