"""The cost of a side in twelve months: drivers, and the lines that are computed from them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from trainium_core.costs.estimate import CostLine, Estimate
from trainium_core.evidence.numbers import words
from trainium_core.evidence.record import BENCH, LAB, Record
from trainium_core.evidence.tco_file import Quantity, SideFile
from trainium_core.facts import facts

ENGINEERING = "Engineering"
"""The line of the port, which is paid once."""

WORK = "work"
"""Key of the driver that all sides share."""

SECONDS = 3600.0
MONTHS = 12

Values = Mapping[str, float]

_LARGEST_USD = 1e30
_OF_LAB = "measured in the lab: its speed has no price"


class TcoError(ValueError):
    """Contradictory inputs. The message is a sentence without a period."""


@dataclass(frozen=True, kw_only=True)
class Driver:
    """A number that amounts depend on. value: None if it is unknown, with the reason in why_unknown."""

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
class Line:
    """US dollars in twelve months. uses: the drivers that `compute` reads."""

    name: str
    uses: tuple[str, ...]
    formula: str
    compute: Callable[[Values], float]


@dataclass(frozen=True, kw_only=True)
class SideCost:
    """The lines of one side. options: how its hours are bought."""

    name: str
    record: Record
    drivers: Mapping[str, Driver]
    lines: tuple[Line, ...]
    options: tuple[str, ...]

    @cached_property
    def values(self) -> Values:
        """The known drivers."""
        return {key: driver.value for key, driver in self.drivers.items() if driver.value is not None}

    def amount(self, line: Line, values: Values) -> float | None:
        if not all(key in values for key in line.uses):
            return None
        usd = line.compute(values)
        return usd if usd < _LARGEST_USD else None

    def why_unknown(self, line: Line) -> str:
        """The reasons of all unknown drivers of a line."""
        reasons = (self.drivers[key].why_unknown for key in line.uses if key not in self.values)
        return "; ".join(dict.fromkeys(reasons)) or f"more than {_LARGEST_USD:.0e} USD: check the numbers"

    def total(self, values: Values) -> float | None:
        """The sum of all lines; None if one of them is unknown."""
        amounts = [self.amount(line, values) for line in self.lines]
        return None if None in amounts else sum(amount for amount in amounts if amount is not None)

    def once(self, values: Values) -> float:
        """The cost of the port, if known."""
        return sum(self.amount(line, values) or 0.0 for line in self.lines if line.name == ENGINEERING)

    def recurring(self, values: Values) -> float:
        """The sum of the other known lines."""
        return sum(self.amount(line, values) or 0.0 for line in self.lines if line.name != ENGINEERING)

    @property
    def known(self) -> float:
        """The sum of the known lines."""
        amounts = (self.amount(line, self.values) for line in self.lines)
        return sum(amount for amount in amounts if amount is not None)

    @property
    def unknown_lines(self) -> Sequence[str]:
        return [line.name for line in self.lines if self.amount(line, self.values) is None]

    def key(self, name: str) -> str:
        """The key of a driver of this side."""
        return f"{self.name}.{name}"


def side_cost(file: SideFile, record: Record, estimate: Estimate | None, metric: str, work: Driver) -> SideCost:
    _check_side(file, record)
    prefix = f"{file.name}."
    options = [
        (row.option, row.share, stated_driver(f"{prefix}usd_hour.{row.option}", f"{file.name}: {row.option}", "USD/h",
                                        row.usd_hour, ""))
        for row in file.hours
    ]  # fmt: skip
    if not options:
        options = [_default_option(prefix, file.name, record, estimate)]
    rest = [] if estimate is None else [line for line in estimate.lines if not _is_instances(line, record)]
    drivers = [
        work,
        _throughput(prefix, file.name, record, metric),
        _compile_seconds(prefix, file.name, record),
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
        *_plan_drivers(prefix, file, rest),
        *(
            stated_driver(f"{prefix}line.{name}", f"{file.name}: {name}", "USD", one, "")
            for name, one in file.lines.items()
        ),
    ]
    shares = [(option, share, driver.key) for option, share, driver in options]
    lines = (*_hour_lines(prefix, shares), *_plan_lines(prefix, rest), *_other_lines(prefix, file))
    return SideCost(
        name=file.name,
        record=record,
        drivers={driver.key: driver for driver in drivers},
        lines=lines,
        options=tuple(option for option, _, _ in options),
    )


def _check_side(file: SideFile, record: Record) -> None:
    if record.kind != BENCH:
        raise TcoError(f"{file.record} is a record of kind {record.kind}, not of `trn bench`")
    if file.plan is not None and record.side == LAB:
        raise TcoError(f"{file.record} was measured in the lab: the prices of {file.plan} are of other machines")


def check_plan(file: SideFile, record: Record, instance_type: str, nodes: int) -> None:
    """Raises TcoError for a plan with other machines than the record."""
    planned, measured = (instance_type, nodes), (record.hardware.type, record.hardware.nodes)
    if planned != measured:
        raise TcoError(
            f"{file.plan} plans {nodes} x {instance_type}, and {file.record} was measured on "
            f"{record.hardware.nodes or 'an unknown number of'} x {record.hardware.type}"
        )


def stated_driver(key: str, label: str, unit: str, stated: Quantity | None, why_unknown: str) -> Driver:
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
    found = record.metrics.get(metric)
    value = None if found is None or not found.value or found.value < 0 else found.value
    why = f"no measurement: {record.id} has no {metric}"
    if found is not None and value is None:
        why = f"no measurement: {found.why_null or f'{metric} is {found.value}'}"
    low = None if found is None or not found.low or found.low <= 0 else found.low
    if record.side == LAB:
        found, value, low, why = None, None, None, _OF_LAB
    return Driver(
        key=f"{prefix}throughput",
        label=f"{name}: {words(metric)}",
        unit="" if found is None else found.unit,
        value=value,
        low=low,
        high=None if found is None else found.high,
        source=f"record {record.id}",
        date=record.made[:10],
        why_unknown=why,
    )


def _compile_seconds(prefix: str, name: str, record: Record) -> Driver:
    measured = [run.phases.get("compile_cold") for run in record.runs if run.excluded is None]
    seconds = [one for one in measured if one is not None and record.side != LAB]
    return Driver(
        key=f"{prefix}compile_seconds",
        label=f"{name}: cold compilation",
        unit="s",
        value=median(seconds) if seconds else None,
        low=min(seconds) if len(seconds) > 1 else None,
        high=max(seconds) if len(seconds) > 1 else None,
        source=f"record {record.id}",
        date=record.made[:10],
        why_unknown=_OF_LAB if record.side == LAB else "no run measured a cold compilation",
    )


def _default_option(prefix: str, name: str, record: Record, estimate: Estimate | None) -> tuple[str, float, Driver]:
    """All hours at the price of the record, else of the plan."""
    hardware = record.hardware
    option = hardware.purchase or "purchase not stated"
    driver = Driver(key=f"{prefix}usd_hour", label=f"{name}: {option}", unit="USD/h", value=None)
    if hardware.usd_hour is not None:
        source, day = hardware.price_source or f"record {record.id}", hardware.price_date or record.made[:10]
        return option, 1.0, replace(driver, value=hardware.usd_hour, source=source, date=day)
    line = next((line for line in estimate.lines if _is_instances(line, record)), None) if estimate else None
    if line is None or line.unit_usd is None or line.price is None:
        return option, 1.0, replace(driver, why_unknown="the price of an hour is unknown")
    option = line.item.product
    usd = float(line.quantity * line.unit_usd)
    return (
        option,
        1.0,
        replace(driver, label=f"{name}: {option}", value=usd, source=line.price.source, date=line.price.date),
    )


def _is_instances(line: CostLine, record: Record) -> bool:
    return line.item.instance_type == record.hardware.type


def _plan_drivers(prefix: str, file: SideFile, rest: Iterable[CostLine]) -> Iterator[Driver]:
    """The price of each other line of the estimate, and the monthly use of those billed by use."""
    for line in rest:
        by_use = line.billed == "by use"
        usd = line.unit_usd if by_use else line.running_hour
        yield Driver(
            key=f"{prefix}price.{line.what}",
            label=f"{file.name}: price of {line.what}",
            unit=f"USD/{line.unit}" if by_use else "USD/h",
            value=None if usd is None else float(usd),
            source=line.price.source if line.price else "",
            date=line.price.date if line.price else "",
            why_unknown=f"the price of {line.what} is unknown",
        )
        if by_use:
            why = f'monthly_use."{line.what}" is not stated, in {line.unit}'
            stated = file.monthly_use.get(line.what)
            yield stated_driver(f"{prefix}use.{line.what}", f"{file.name}: {line.what} a month", line.unit, stated, why)
    unused = file.monthly_use.keys() - {line.what for line in rest if line.billed == "by use"}
    if unused:
        known = ", ".join(line.what for line in rest if line.billed == "by use") or "none without a plan"
        raise TcoError(f"sides.{file.name}.monthly_use has {', '.join(sorted(unused))}; billed by use: {known}")


def _hour_lines(prefix: str, options: Sequence[tuple[str, float, str]]) -> Iterator[Line]:
    throughput, idle = f"{prefix}throughput", f"{prefix}idle_share"
    compiling = (f"{prefix}compilations", f"{prefix}compile_seconds")
    prices = tuple(key for _, _, key in options)

    def working_hours(values: Values) -> float:
        return values[WORK] / values[throughput] / SECONDS

    def compile_hours(values: Values) -> float:
        return values[compiling[0]] * values[compiling[1]] / SECONDS

    def hour(values: Values) -> float:
        return sum(share * values[key] for _, share, key in options)

    def of_option(share: float, key: str) -> Callable[[Values], float]:
        return lambda values: working_hours(values) * share * values[key]

    for option, share, key in options:
        part = "" if share == 1 else f" x {share:g}"
        yield Line(
            name=f"Hours at work, {option}",
            uses=(WORK, throughput, key),
            formula=f"work / throughput{part} x price of an hour",
            compute=of_option(share, key),
        )
    yield Line(
        name="Compilation",
        uses=(*compiling, *prices),
        formula="cold compilations x their duration x price of an hour",
        compute=lambda values: compile_hours(values) * hour(values),
    )
    yield Line(
        name="Idle hours",
        uses=(WORK, throughput, *compiling, idle, *prices),
        formula="hours at work and in compilation x idle share / (1 - idle share) x price of an hour",
        compute=lambda values: (
            (working_hours(values) + compile_hours(values)) * values[idle] / (1 - values[idle]) * hour(values)
        ),
    )


def _plan_lines(prefix: str, rest: Iterable[CostLine]) -> Iterator[Line]:
    throughput, idle = f"{prefix}throughput", f"{prefix}idle_share"
    compiling = (f"{prefix}compilations", f"{prefix}compile_seconds")
    month = facts()["billing"]["hours_per_month"]

    def paid_hours(values: Values) -> float:
        busy = values[WORK] / values[throughput] + values[compiling[0]] * values[compiling[1]]
        return busy / SECONDS / (1 - values[idle])

    def while_running(key: str) -> Callable[[Values], float]:
        return lambda values: paid_hours(values) * values[key]

    def of_use(use: str, price: str) -> Callable[[Values], float]:
        return lambda values: values[use] * MONTHS * values[price]

    def standing(key: str) -> Callable[[Values], float]:
        return lambda values: values[key] * month * MONTHS

    for line in rest:
        price, use = f"{prefix}price.{line.what}", f"{prefix}use.{line.what}"
        if line.billed == "by use":
            formula = f"{line.unit} a month x {MONTHS} x price"
            yield Line(name=line.what, uses=(use, price), formula=formula, compute=of_use(use, price))
        elif line.billed == "always":
            formula = f"price of an hour x {month} x {MONTHS}"
            yield Line(name=line.what, uses=(price,), formula=formula, compute=standing(price))
        else:
            uses = (WORK, throughput, *compiling, idle, price)
            formula = "all hours that the nodes run x price of an hour"
            yield Line(name=line.what, uses=uses, formula=formula, compute=while_running(price))


def _other_lines(prefix: str, file: SideFile) -> Iterator[Line]:
    days, day = f"{prefix}engineering_days", f"{prefix}day_usd"
    yield Line(
        name=ENGINEERING,
        uses=(days, day),
        formula="days x price of a day, once",
        compute=lambda values: values[days] * values[day],
    )

    def stated(key: str) -> Callable[[Values], float]:
        return lambda values: values[key]

    for name in file.lines:
        key = f"{prefix}line.{name}"
        yield Line(name=name, uses=(key,), formula="as stated", compute=stated(key))
