"""The file of `trn tco`: the work of twelve months, and what each side adds to its record and its plan."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, cast

from trainium_core.evidence.toml_file import TomlFileError, TomlReader, is_number, parse_toml

_QUANTITY_KEYS = ("value", "low", "high", "source", "date")
_SIDE_KEYS = (
    "record",
    "plan",
    "idle_share",
    "compilations",
    "compile_seconds",
    "engineering_days",
    "day_usd",
    "hours",
    "monthly_use",
    "lines",
)
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
    """A share of the hours, and the price of all nodes for an hour.

    Attributes:
        share: From 0 to 1. Default in the file: 1.
    """

    option: str
    share: float
    usd_hour: Quantity


@dataclass(frozen=True, kw_only=True)
class SideFile:
    """The statements of the file about one side. A number that is None was not stated: dependent amounts are unknown.

    Attributes:
        record: Path of the bench record, as written.
        plan: Path of the cdk.json that `trn estimate` prices, if any.
        idle_share: Share of the paid hours in which no job runs.
        compilations: Cold compilations in twelve months.
        compile_seconds: Duration of one. None: the median of the record.
        engineering_days: Days of engineering for the port.
        day_usd: Price of such a day.
        hours: How the hours are bought. Empty: at the price of the nodes in the plan; without a plan, of the record.
        monthly_use: Use in a month, in the unit of the price, by the name of the item.
        lines: Other costs in twelve months, in US dollars, by name.
    """

    name: str
    record: str
    plan: str | None = None
    idle_share: Quantity | None = None
    compilations: Quantity | None = None
    compile_seconds: Quantity | None = None
    engineering_days: Quantity | None = None
    day_usd: Quantity | None = None
    hours: tuple[PurchaseOption, ...] = ()
    monthly_use: Mapping[str, Quantity]
    lines: Mapping[str, Quantity]


@dataclass(frozen=True, kw_only=True)
class TcoFile:
    """The content of the file. The unit of the work is the metric's unit without "/s"."""

    metric: str
    work: Quantity
    sides: tuple[SideFile, ...]


def read_tco_file(text: str) -> TcoFile:
    """Read the text of the file.

    Raises:
        TomlFileError: The file has mistakes. The error has all of them.
    """
    reading = _Reading()
    file = reading.file(parse_toml(text))
    if reading.problems:
        raise TomlFileError(reading.problems)
    return file


class _Reading(TomlReader):
    def file(self, document: Mapping[str, Any]) -> TcoFile:
        self.only(document, ("metric", "work", "sides"), "")
        sides = self.table(document, "sides", "")
        if len(sides) not in (1, 2):
            self.problems.append(f"sides has {len(sides)} tables; it needs one, or two to compare")
        return TcoFile(
            metric=self.text({"metric": "tokens_per_second", **document}, "metric", "") or "",
            work=self._quantity(document, "work", "", positive=True),
            sides=tuple(self._side(name, self.table(sides, name, "sides.")) for name in sides),
        )

    def _side(self, name: str, table: Mapping[str, Any]) -> SideFile:
        place = f"sides.{name}."
        self.only(table, _SIDE_KEYS, place)
        return SideFile(
            name=name,
            record=self.text(table, "record", place, required=True) or "",
            plan=self.text(table, "plan", place),
            idle_share=self._optional(table, "idle_share", place, below=1.0),
            compilations=self._optional(table, "compilations", place),
            compile_seconds=self._optional(table, "compile_seconds", place),
            engineering_days=self._optional(table, "engineering_days", place),
            day_usd=self._optional(table, "day_usd", place),
            hours=self._hours(table, f"{place}hours"),
            monthly_use=self._quantities(table, "monthly_use", place),
            lines=self._quantities(table, "lines", place),
        )

    def _hours(self, side: Mapping[str, Any], place: str) -> tuple[PurchaseOption, ...]:
        rows = side.get("hours", [])
        if not isinstance(rows, list):
            self.problems.append(f"{place} is {rows!r}; it must be a list of tables, [[{place}]]")
            return ()
        by_place = {f"{place}[{at}]": row for at, row in enumerate(cast("list[Any]", rows))}
        options = tuple(self._option(self.table(by_place, at, ""), f"{at}.") for at in by_place)
        total = sum(option.share for option in options)
        if options and abs(total - 1) > _ROUNDING:
            self.problems.append(f"{place}: the shares sum to {total:g}, not 1")
        if len({option.option for option in options}) < len(options):
            self.problems.append(f"{place}: two rows have the same option")
        return options

    def _option(self, row: Mapping[str, Any], place: str) -> PurchaseOption:
        self.only(row, ("option", "share", "usd_hour"), place)
        share = self.value({"share": 1.0, **row}, "share", place, _is_amount, "a number of 0 or more")
        return PurchaseOption(
            option=self.text(row, "option", place, required=True) or "",
            share=float(share or 0.0),
            usd_hour=self._quantity(row, "usd_hour", place),
        )

    def _quantities(self, table: Mapping[str, Any], key: str, place: str) -> Mapping[str, Quantity]:
        rows = self.table(table, key, place)
        return {name: self._quantity(rows, name, f"{place}{key}.") for name in rows}

    def _optional(
        self, table: Mapping[str, Any], key: str, place: str, *, below: float | None = None
    ) -> Quantity | None:
        return self._quantity(table, key, place, below=below) if key in table else None

    def _quantity(
        self, parent: Mapping[str, Any], key: str, prefix: str, *, positive: bool = False, below: float | None = None
    ) -> Quantity:
        table, place = self.table(parent, key, prefix, required=True), f"{prefix}{key}"
        self.only(table, _QUANTITY_KEYS, f"{place}.")
        numbers = {
            end: float(number)
            for end in ("low", "value", "high")
            if (number := self.value(table, end, f"{place}.", _is_amount, "a number of 0 or more")) is not None
        }
        for end, number in numbers.items():
            if positive and number <= 0:
                self.problems.append(f"{place}.{end} is {number:g}; it must be more than 0")
            if below is not None and number >= below:
                self.problems.append(f"{place}.{end} is {number:g}; it must be less than {below:g}")
        if isinstance(parent.get(key), dict):  # Otherwise `self.table` has added the problem.
            self.problems += [f"{place} {problem}" for problem in _quantity_problems(table, numbers)]
        return Quantity(
            value=numbers.get("value", 0.0),
            low=numbers.get("low"),
            high=numbers.get("high"),
            source=str(table.get("source", "")),
            date=str(table.get("date", "")),
        )


def _is_amount(value: Any) -> bool:
    return is_number(value) and value >= 0


def _quantity_problems(table: Mapping[str, Any], numbers: Mapping[str, float]) -> Iterator[str]:
    if "value" not in table:
        yield "has no value"
    if not isinstance(table.get("source"), str) or not table["source"]:
        yield "has no source"
    if not isinstance(table.get("date"), date):
        yield "has no date, such as date = 2026-11-24, without quotes"
    if list(numbers.values()) != sorted(numbers.values()):
        yield "must have low <= value <= high"
