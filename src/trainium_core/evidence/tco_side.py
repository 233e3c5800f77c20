"""The cost of a side in twelve months: drivers, and the lines that are computed from them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from statistics import median

from trainium_core.costs.estimate import CostLine, Estimate
from trainium_core.evidence.numbers import words
from trainium_core.evidence.record import BENCH, LAB, Record
from trainium_core.evidence.tco_file import Quantity, SideFile
from trainium_core.facts import facts

ENGINEERING = "Engineering"
"""The line of the engineering days for the port, which are paid once."""

WORK = "work"
"""Key of the driver that all sides share."""

AT_WORK = "work / throughput / 3600"
"""The formula of hours at work begins with it."""
COMPILING = "cold compilations x their duration in hours x price of an hour"
IDLE = "hours at work and in compilation x idle share / (1 - idle share) x price of an hour"
ALL_HOURS = "all hours that the nodes run x price of an hour"

SECONDS_PER_HOUR = 3600.0
MONTHS = 12

Values = Mapping[str, float]

_LARGEST_USD = 1e30
_OF_LAB = "measured on a stand-in, which has no accelerators"


class TcoError(ValueError):
    """Contradictory inputs. The message is a sentence without a period."""


@dataclass(frozen=True, kw_only=True)
class Driver:
    """A number that amounts depend on.

    Attributes:
        value: The number; None if it is unknown, for the reason in `why_unknown`.
        low: The low end of the range, if there is one.
        high: The high end of the range, if there is one.
    """

    key: str
    label: str
    unit: str
    value: float | None
    low: float | None = None
    high: float | None = None
    source: str = ""
    date: str = ""
    why_unknown: str = ""


@dataclass(frozen=True, kw_only=True)
class TcoLine:
    """An amount in twelve months, in US dollars, except for the line "hours".

    Attributes:
        uses: Keys of the drivers that `compute` reads.
        formula: The computation in words.
    """

    name: str
    uses: tuple[str, ...]
    formula: str
    compute: Callable[[Values], float]


@dataclass(frozen=True, kw_only=True)
class SideCost:
    """The lines of one side.

    Attributes:
        hours: All hours that the nodes run. Not part of `lines`.
        options: The purchase options of the hours.
    """

    name: str
    record: Record
    drivers: Mapping[str, Driver]
    lines: tuple[TcoLine, ...]
    hours: TcoLine
    options: tuple[str, ...]

    @cached_property
    def values(self) -> Values:
        """The known drivers."""
        return {key: driver.value for key, driver in self.drivers.items() if driver.value is not None}

    def amount(self, line: TcoLine, values: Values) -> float | None:
        """The amount of a line; None if a driver is unknown or the throughput is not above 0, or if the amount is too
        large to be true.
        """
        throughput = self.key("throughput")
        if not all(key in values for key in line.uses) or (throughput in line.uses and values[throughput] <= 0):
            return None
        amount = line.compute(values)
        return amount if amount < _LARGEST_USD else None

    def why_unknown(self, line: TcoLine) -> str:
        """The reasons of all unknown drivers of a line; without one, that its amount is too large."""
        reasons = (self.drivers[key].why_unknown for key in line.uses if key not in self.values)
        return "; ".join(dict.fromkeys(reasons)) or f"more than {_LARGEST_USD:.0e} USD: check the numbers"

    def total(self, values: Values) -> float | None:
        """The sum of all lines; None if one of them is unknown."""
        amounts = [self.amount(line, values) for line in self.lines]
        return None if None in amounts else sum(amount for amount in amounts if amount is not None)

    def known(self, values: Values, *, once: bool | None = None) -> float:
        """The sum of the known lines.

        Args:
            values: The values of the drivers.
            once: True: only engineering, which is paid once. False: only the other lines. None: all lines.
        """
        lines = [line for line in self.lines if once is None or once == (line.name == ENGINEERING)]
        return sum(self.amount(line, values) or 0.0 for line in lines)

    @property
    def unknown_lines(self) -> Sequence[str]:
        return [line.name for line in self.lines if self.amount(line, self.values) is None]

    def key(self, name: str) -> str:
        """The key of a driver of this side."""
        return f"{self.name}.{name}"


def side_cost(file: SideFile, record: Record, estimate: Estimate | None, metric: str, work: Driver) -> SideCost:
    """The cost of one side.

    Args:
        file: The statements about the side.
        record: Its bench record.
        estimate: The estimate of its plan, if it has one.
        metric: The metric of the record that counts work per second.
        work: The work of twelve months.

    Raises:
        TcoError: The file contradicts the record or the estimate.
    """
    if record.kind != BENCH:
        raise TcoError(f"{file.record} is a results file of kind {record.kind}, not of `trn bench`")
    if file.plan is not None and record.side == LAB:
        raise TcoError(f"{file.record} was measured on a stand-in: the prices of {file.plan} are for other machines")
    prefix = f"{file.name}."
    other_lines = [] if estimate is None else [line for line in estimate.lines if not _is_instances(line, record)]
    options = [
        (
            row.option,
            row.share,
            stated_driver(f"{prefix}usd_hour.{row.option}", f"{file.name}: {row.option}", "USD/h", row.usd_hour, ""),
        )
        for row in file.hours
    ] or [_default_option(prefix, file.name, record, estimate)]
    drivers = [
        work,
        _throughput(prefix, file.name, record, metric),
        _compile_seconds(prefix, file, record),
        *(
            stated_driver(f"{prefix}{key}", f"{file.name}: {label}", unit, getattr(file, key), f"{key} is not stated")
            for key, label, unit in (
                ("idle_share", "idle share", ""),
                ("compilations", "cold compilations", ""),
                ("engineering_days", "engineering days", "days"),
                ("day_usd", "price of a day", "USD"),
            )
        ),
        *(driver for _, _, driver in options),
        *_plan_drivers(prefix, file, other_lines),
        *(
            stated_driver(f"{prefix}line.{name}", f"{file.name}: {name}", "USD", quantity, "")
            for name, quantity in file.lines.items()
        ),
    ]
    shares = [(option, share, driver.key) for option, share, driver in options]
    hours, *lines = _lines(prefix, shares, other_lines, file.lines)
    return SideCost(
        name=file.name,
        record=record,
        drivers={driver.key: driver for driver in drivers},
        lines=tuple(lines),
        hours=hours,
        options=tuple(option for option, _, _ in options),
    )


def check_plan(file: SideFile, record: Record, instance_type: str, nodes: int) -> None:
    """Check that a plan has the machines of the record.

    Raises:
        TcoError: The plan has other machines.
    """
    if (instance_type, nodes) != (record.hardware.type, record.hardware.nodes):
        raise TcoError(
            f"{file.plan} plans {nodes} x {instance_type}, and {file.record} was measured on "
            f"{record.hardware.nodes or 'an unknown number of'} x {record.hardware.machine}"
        )


def stated_driver(key: str, label: str, unit: str, stated: Quantity | None, why_unknown: str) -> Driver:
    """The driver of a number in the file. `why_unknown` is the reason if the file does not state it."""
    if stated is None:
        return Driver(key=key, label=label, unit=unit, value=None, why_unknown=why_unknown)
    return Driver(
        key=key,
        label=label,
        unit=unit,
        value=stated.value,
        low=stated.low,
        high=stated.high,
        source=stated.source,
        date=stated.date,
    )


def _throughput(prefix: str, name: str, record: Record, metric: str) -> Driver:
    driver = Driver(
        key=f"{prefix}throughput",
        label=f"{name}: {words(metric)}",
        unit="",
        value=None,
        source=f"results {record.id}",
        date=record.made[:10],
    )
    measured = record.metrics.get(metric)
    if record.side == LAB:
        return replace(driver, why_unknown=_OF_LAB)
    if measured is None:
        return replace(driver, why_unknown=f"no measurement: {record.id} has no {metric}")
    if measured.value is None or measured.value <= 0:
        why = measured.why_null or f"{metric} is {measured.value}"
        return replace(driver, unit=measured.unit, why_unknown=f"no measurement: {why}")
    return replace(driver, unit=measured.unit, value=measured.value, low=measured.low, high=measured.high)


def _compile_seconds(prefix: str, file: SideFile, record: Record) -> Driver:
    """The duration of a cold compilation. It is 0, as its cost, if the file states that there are none."""
    key, label = f"{prefix}compile_seconds", f"{file.name}: cold compilation"
    count = file.compilations
    if file.compile_seconds is None and count is not None and max(count.value, count.high or 0.0) == 0:
        return Driver(key=key, label=label, unit="s", value=0.0, source="not needed: there are no cold compilations")
    if file.compile_seconds is not None:
        return stated_driver(key, label, "s", file.compile_seconds, "")
    measured = [run.phases.get("compile_cold") for run in record.runs if run.excluded is None]
    seconds = [value for value in measured if value is not None and record.side != LAB]
    return Driver(
        key=key,
        label=label,
        unit="s",
        value=median(seconds) if seconds else None,
        low=min(seconds) if len(seconds) > 1 else None,
        high=max(seconds) if len(seconds) > 1 else None,
        source=f"results {record.id}",
        date=record.made[:10],
        why_unknown=_OF_LAB if record.side == LAB else "no run measured a cold compilation: state compile_seconds",
    )


def _default_option(prefix: str, name: str, record: Record, estimate: Estimate | None) -> tuple[str, float, Driver]:
    """Name, share and driver of the purchase option of all hours.

    The price is that of the nodes in the plan; without a plan, that of the record, which includes everything that is
    billed by the hour. With a plan, each of these items has a separate line.
    """
    hardware = record.hardware
    option = hardware.purchase or "purchase not stated"
    driver = Driver(key=f"{prefix}usd_hour", label=f"{name}: {option}", unit="USD/h", value=None)
    unknown = option, 1.0, replace(driver, why_unknown="the price of an hour is unknown")
    if estimate is None:
        if hardware.usd_hour is None:
            return unknown
        source, day = hardware.price_source or f"results {record.id}", hardware.price_date or record.made[:10]
        return option, 1.0, replace(driver, value=hardware.usd_hour, source=source, date=day)
    line = next((line for line in estimate.lines if _is_instances(line, record)), None)
    if line is None or line.unit_usd is None or line.price is None:
        return unknown
    option = line.item.product
    usd = float(line.quantity * line.unit_usd)
    return (
        option,
        1.0,
        replace(driver, label=f"{name}: {option}", value=usd, source=line.price.source, date=line.price.date),
    )


def _is_instances(line: CostLine, record: Record) -> bool:
    return line.item.instance_type == record.hardware.type


def _plan_drivers(prefix: str, file: SideFile, lines: Sequence[CostLine]) -> Iterator[Driver]:
    """The price of each line of the estimate except the instances, and the use in a month of lines billed by use."""
    by_use = [line.what for line in lines if line.billed == "by use"]
    unused = file.monthly_use.keys() - {*by_use}
    if unused:
        known = ", ".join(by_use) or ("none without a plan" if file.plan is None else f"nothing in {file.plan}")
        raise TcoError(f"sides.{file.name}.monthly_use has {', '.join(sorted(unused))}; billed by use: {known}")
    for line in lines:
        usd = line.unit_usd if line.what in by_use else line.running_hour
        yield Driver(
            key=f"{prefix}price.{line.what}",
            label=f"{file.name}: price of {line.what}",
            unit=f"USD/{line.unit}" if line.what in by_use else "USD/h",
            value=None if usd is None else float(usd),
            source=line.price.source if line.price else "",
            date=line.price.date if line.price else "",
            why_unknown=f"the price of {line.what} is unknown",
        )
        if line.what in by_use:
            why = f'monthly_use."{line.what}" is not stated, in {line.unit}'
            stated = file.monthly_use.get(line.what)
            yield stated_driver(f"{prefix}use.{line.what}", f"{file.name}: {line.what} a month", line.unit, stated, why)


def _lines(
    prefix: str, options: Sequence[tuple[str, float, str]], plan_lines: Iterable[CostLine], stated: Iterable[str]
) -> Iterator[TcoLine]:
    """All hours that the nodes run, then the lines in US dollars."""
    throughput, idle, compilations, seconds, days, day = (
        f"{prefix}{name}"
        for name in (
            "throughput", "idle_share", "compilations", "compile_seconds", "engineering_days", "day_usd",
        )
    )  # fmt: skip
    busy, prices = (WORK, throughput, compilations, seconds, idle), tuple(key for _, _, key in options)

    def work_hours(values: Values) -> float:
        return values[WORK] / values[throughput] / SECONDS_PER_HOUR

    def compile_hours(values: Values) -> float:
        return values[compilations] * values[seconds] / SECONDS_PER_HOUR

    def all_hours(values: Values) -> float:
        return (work_hours(values) + compile_hours(values)) / (1 - values[idle])

    def price(values: Values) -> float:
        return sum(share * values[key] for _, share, key in options)

    def option_cost(share: float, key: str) -> Callable[[Values], float]:
        return lambda values: work_hours(values) * share * values[key]

    yield TcoLine(name="hours", uses=busy, formula="", compute=all_hours)
    for option, share, key in options:
        part = "" if share == 1 else f" x {share:g}"
        yield TcoLine(
            name=f"Hours at work, {option}",
            uses=(WORK, throughput, key),
            formula=f"{AT_WORK}{part} x price of an hour",
            compute=option_cost(share, key),
        )
    yield TcoLine(
        name="Compilation",
        uses=(compilations, seconds, *prices),
        formula=COMPILING,
        compute=lambda values: compile_hours(values) * price(values),
    )
    yield TcoLine(
        name="Idle hours",
        uses=(*busy, *prices),
        formula=IDLE,
        compute=lambda values: all_hours(values) * values[idle] * price(values),
    )
    for line in plan_lines:
        yield _plan_line(prefix, line, busy, all_hours)
    yield TcoLine(
        name=ENGINEERING,
        uses=(days, day),
        formula="days x price of a day, once",
        compute=lambda values: values[days] * values[day],
    )
    for name in stated:
        yield _product(name, "as stated", 1, f"{prefix}line.{name}")


def _plan_line(prefix: str, line: CostLine, busy: tuple[str, ...], hours: Callable[[Values], float]) -> TcoLine:
    price, month = f"{prefix}price.{line.what}", facts()["billing"]["hours_per_month"]
    if line.billed == "by use":
        return _product(line.what, f"{line.unit} a month x {MONTHS} x price", MONTHS, f"{prefix}use.{line.what}", price)
    if line.billed == "always":
        return _product(line.what, f"price of an hour x {month} x {MONTHS}", month * MONTHS, price)
    return TcoLine(
        name=line.what,
        uses=(*busy, price),
        formula=ALL_HOURS,
        compute=lambda values: hours(values) * values[price],
    )


def _product(name: str, formula: str, factor: float, *keys: str) -> TcoLine:
    return TcoLine(
        name=name, uses=keys, formula=formula, compute=lambda values: prod((factor, *(values[key] for key in keys)))
    )
