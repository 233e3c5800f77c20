"""The file of `trn tco`: the work of twelve months, and what each side adds to its record and its plan."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from math import isfinite
from typing import Any, cast

from trainium_core.evidence.toml_file import TomlFileError, TomlReader, parse_toml

_QUANTITY_KEYS = ("value", "low", "high", "source", "date")
_SIDE_KEYS = (
    "record",
    "plan",
    "idle_share",
    "compilations",
    "engineering_days",
    "day_usd",
    "hours",
    "monthly_use",
    "lines",
)
_ONE = 1.0
_ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number that the author of the file states, with its range, source and ISO date."""

    value: float
    low: float | None = None
    high: float | None = None
    source: str
    date: str


@dataclass(frozen=True, kw_only=True)
class PurchaseOption:
    """A share of the hours, and the price of all nodes for one of them."""

    option: str
    share: float
    usd_hour: Quantity


@dataclass(frozen=True, kw_only=True)
class SideFile:
    """The statements of the file about one side. None: not stated, so dependent amounts are unknown.

    Attributes:
        record: Path of the bench record, as written.
        plan: Path of the cdk.json that `trn estimate` prices.
        idle_share: Share of the paid hours in which no job runs.
        compilations: Cold compilations in twelve months.
        hours: How the hours are bought. Empty: at the price of the record, else of the plan.
        monthly_use: By the name of an item that is billed by use, in the units of its price.
        lines: US dollars in twelve months by name.
    """

    name: str
    record: str
    plan: str | None = None
    idle_share: Quantity | None = None
    compilations: Quantity | None = None
    engineering_days: Quantity | None = None
    day_usd: Quantity | None = None
    hours: tuple[PurchaseOption, ...] = ()
    monthly_use: Mapping[str, Quantity]
    lines: Mapping[str, Quantity]


@dataclass(frozen=True, kw_only=True)
class TcoFile:
    """The work is in the unit of the metric, without its "/s"."""

    metric: str
    work: Quantity
    sides: tuple[SideFile, ...]


def read_tco_file(text: str) -> TcoFile:
    """Raises TomlFileError with all problems."""
    reading = _Reading()
    found = reading.file(parse_toml(text))
    if reading.problems:
        raise TomlFileError(reading.problems)
    return found


class _Reading(TomlReader):
    def file(self, document: Mapping[str, Any]) -> TcoFile:
        self.only(document, ("metric", "work", "sides"), "")
        tables = self.table(document.get("sides", {}), "sides")
        if len(tables) not in (1, 2):
            self.problems.append(f"sides: has {len(tables)} tables; it needs one, or two to compare")
        return TcoFile(
            metric=self._text(document.get("metric", "tokens_per_second"), "metric"),
            work=self._quantity(document.get("work"), "work", positive=True),
            sides=tuple(self._side(name, self.table(table, f"sides.{name}")) for name, table in tables.items()),
        )

    def _side(self, name: str, table: Mapping[str, Any]) -> SideFile:
        place = f"sides.{name}"
        self.only(table, _SIDE_KEYS, f"{place}.")
        if "record" not in table:
            self.problems.append(f"{place}.record is missing: it names the record that `trn bench` wrote")
        return SideFile(
            name=name,
            record=self._text(table.get("record", ""), f"{place}.record"),
            plan=self._text(table["plan"], f"{place}.plan") if "plan" in table else None,
            idle_share=self._optional(table, "idle_share", place, below=_ONE),
            compilations=self._optional(table, "compilations", place),
            engineering_days=self._optional(table, "engineering_days", place),
            day_usd=self._optional(table, "day_usd", place),
            hours=self._hours(table.get("hours", []), f"{place}.hours"),
            monthly_use=self._quantities(table.get("monthly_use", {}), f"{place}.monthly_use"),
            lines=self._quantities(table.get("lines", {}), f"{place}.lines"),
        )

    def _hours(self, rows: Any, place: str) -> tuple[PurchaseOption, ...]:
        if not isinstance(rows, list):
            self.problems.append(f"{place}: is not a list of tables, [[{place}]]")
            return ()
        found = tuple(self._option(row, f"{place}[{at}]") for at, row in enumerate(cast("list[Any]", rows)))
        total = sum(row.share for row in found)
        if found and abs(total - _ONE) > _ROUNDING:
            self.problems.append(f"{place}: the shares sum to {total:g}, not 1")
        names = [row.option for row in found]
        if len(set(names)) < len(names):
            self.problems.append(f"{place}: two rows have the same option")
        return found

    def _option(self, row: Any, place: str) -> PurchaseOption:
        table = self.table(row, place)
        self.only(table, ("option", "share", "usd_hour"), f"{place}.")
        return PurchaseOption(
            option=self._text(table.get("option", ""), f"{place}.option"),
            share=self._number(table.get("share", _ONE), f"{place}.share"),
            usd_hour=self._quantity(table.get("usd_hour"), f"{place}.usd_hour"),
        )

    def _quantities(self, value: Any, place: str) -> Mapping[str, Quantity]:
        return {name: self._quantity(one, f"{place}.{name}") for name, one in self.table(value, place).items()}

    def _optional(
        self, table: Mapping[str, Any], key: str, place: str, *, below: float | None = None
    ) -> Quantity | None:
        return self._quantity(table[key], f"{place}.{key}", below=below) if key in table else None

    def _quantity(self, value: Any, place: str, *, positive: bool = False, below: float | None = None) -> Quantity:
        table = self.table(value, place)
        self.only(table, _QUANTITY_KEYS, f"{place}.")
        numbers = {key: self._number(table[key], f"{place}.{key}") for key in ("low", "value", "high") if key in table}
        for key, number in numbers.items():
            if positive and number <= 0:
                self.problems.append(f"{place}.{key} is {number:g}; it must be more than 0")
            if below is not None and number >= below:
                self.problems.append(f"{place}.{key} is {number:g}; it must be less than {below:g}")
        for problem in _missing(table, numbers):
            self.problems.append(f"{place} {problem}")
        return Quantity(
            value=numbers.get("value", 0.0),
            low=numbers.get("low"),
            high=numbers.get("high"),
            source=str(table.get("source", "")),
            date=str(table.get("date", "")),
        )

    def _number(self, value: Any, place: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
            self.problems.append(f"{place} is {value!r}; it must be a number of 0 or more")
            return 0.0
        return float(value)

    def _text(self, value: Any, place: str) -> str:
        if not isinstance(value, str) or not value:
            self.problems.append(f"{place} is {value!r}; it must be text")
            return ""
        return value


def _missing(table: Mapping[str, Any], numbers: Mapping[str, float]) -> Iterator[str]:
    """The missing parts of a quantity. An empty table was already refused."""
    if not table:
        return
    if "value" not in table:
        yield "has no value"
    if not isinstance(table.get("source"), str) or not table["source"]:
        yield "has no source"
    if not isinstance(table.get("date"), date):
        yield "has no date, such as 2026-11-24"
    if list(numbers.values()) != sorted(numbers.values()):
        yield "has a low, a value and a high that are not in this order"
