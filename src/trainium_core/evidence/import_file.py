"""A record from numbers that exist already: files of other tools, and numbers that a file states with their source."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from trainium_core.evidence.bench import (
    COST_FORMULA,
    TOKENS_PER_SECOND,
    USD_LIST,
    USD_PAID,
    MeasuredRun,
    SidePrices,
    imported_rates,
    run_metrics,
    usd_per_million,
)
from trainium_core.evidence.imports import Imported, ImportFileError, read_results
from trainium_core.evidence.metric import FEWEST_RUNS, QUOTED, Metric
from trainium_core.evidence.record import BENCH, RECORD_ID, SCHEMA, Input, Record, RecordedRun, RecordError, Tool
from trainium_core.evidence.steps import warmup_rule
from trainium_core.evidence.toml_file import TomlFileError, TomlReader, is_number, parse_toml
from trainium_core.evidence.typed_json import JsonValueError, from_json
from trainium_core.plurals import count

_OWN_KEYS = ("id", "side", "workload", "hardware", "software", "runs", "metrics", "warnings")
_RUN_KEYS = ("seed", "loss")
_ABOVE_0 = "a number above 0"
_ID_RULE = "up to 100 letters, digits, dots, hyphens and underscores, beginning with a letter or digit"


def imported_record(content: bytes, path: Path, *, made: str, tool: Tool) -> Record:
    """The record that a file describes with the keys of a record, `results`, `warmup_steps` and `list_usd_hour`.

    Args:
        content: The content of the file.
        path: Its path. Paths in the file are relative to its folder.
        made: The time of the record.
        tool: The version of this package.

    Raises:
        TomlFileError: The file or one of its results has a mistake.
    """
    try:
        document = parse_toml(content.decode())
    except UnicodeDecodeError as error:
        raise TomlFileError([f"the file is not TOML: {error}"]) from error
    names = document.pop("results", [])
    for key in document:
        if key not in _OWN_KEYS:
            raise TomlFileError([f"{key} is not a known key; allowed: results, {', '.join(_OWN_KEYS)}"])
    raw = cast("dict[str, Any]", _without_dates(document))
    list_usd = _read_own_keys(raw)
    try:
        started = {"kind": BENCH, "made": made, "tool": {"version": tool.version}}
        record = from_json({**started, **raw}, Record, schema=SCHEMA)
        inputs, results = _results(names, path.parent)
        stated = record.runs or tuple(RecordedRun() for _ in results)
        if results and len(stated) != len(results):
            has = f"results has {count(len(results), 'file')}, and runs has {count(len(stated), 'run')}"
            raise TomlFileError([f"{has}: each run needs its file"])
        runs = [
            MeasuredRun(run=run, rates=imported_rates([result]), imported=(result,))
            for run, result in zip(stated, results, strict=False)
        ]
        prices = _prices(record, list_usd)
        return replace(
            record,
            runs=stated,
            metrics={**_costs(record, prices), **dict(run_metrics(runs, prices) if runs else ()), **record.metrics},
            inputs=(_input(path.name, content), *inputs),
            warnings=(*record.warnings, *dict.fromkeys(note for result in results for note in result.warnings)),
        )
    except (JsonValueError, RecordError, AttributeError) as error:
        raise TomlFileError([str(error)]) from error


def _read_own_keys(raw: Mapping[str, Any]) -> float | None:
    """Check what only this file has, and replace it by what a record has.

    Returns:
        The list price in US dollars per hour; None if it is not stated.

    Raises:
        TomlFileError: The file has mistakes.
    """
    reader = TomlReader()
    tables = (cast("dict[str, Any]", reader.table(raw, key, "")) for key in ("workload", "hardware", "metrics"))
    workload, hardware, metrics = tables
    steps = reader.value(workload, "warmup_steps", "workload.", _is_positive, "a whole number above 0")
    if steps is not None and "warmup" in workload:
        reader.problems.append("workload has warmup_steps and warmup; state one of them")
    prices = [
        reader.value(hardware, key, "hardware.", lambda value: is_number(value) and value > 0, _ABOVE_0)
        for key in ("usd_hour", "list_usd_hour")
    ]
    for key in ("price_source", "price_date") if prices != [None, None] else ():
        reader.text(hardware, key, "hardware.", required=True)
    for name in metrics:
        metric = cast("dict[str, Any]", reader.table(metrics, name, "metrics."))
        if metric.setdefault("origin", QUOTED) != QUOTED:
            reader.problems.append(
                f"metrics.{name}.origin is {metric['origin']!r}; a number without a file is {QUOTED}"
            )
    reader.value(raw, "id", "", lambda value: bool(RECORD_ID.fullmatch(str(value))), _ID_RULE)
    _check_runs(reader, raw)
    if reader.problems:
        raise TomlFileError(reader.problems)
    if steps is not None:
        workload["warmup"] = warmup_rule(workload.pop("warmup_steps"))
    return hardware.pop("list_usd_hour", None)


def _check_runs(reader: TomlReader, raw: Mapping[str, Any]) -> None:
    """Add the problems of the runs, which have a seed and losses and nothing else."""
    tables = "a list of tables, one for each run"
    runs = reader.value(raw, "runs", "", lambda value: isinstance(value, list), tables) or ()
    seeds, losses = list[Any](), list[Any]()
    for index, run in enumerate(cast("list[Any]", runs)):
        place = f"runs[{index}]."
        if not isinstance(run, dict):
            reader.problems.append(f"runs[{index}] is {run!r}; runs must be {tables}")
            continue
        table = cast("dict[str, Any]", run)
        reader.only(table, _RUN_KEYS, place)
        pairs = "a list of pairs of a step and its loss, each step once"
        seeds.append(
            reader.value(table, "seed", place, lambda value: type(value) is int, "a whole number", required=True)
        )
        losses.append(reader.value(table, "loss", place, _are_losses, pairs, required=True))
    for key, values in (("seed", seeds), ("loss", losses)):
        if any(values.count(value) > 1 for value in values if value is not None):
            reader.problems.append(f"two runs have the same {key}: list each run once")


def _are_losses(value: object) -> bool:
    pairs = cast("list[Any]", value) if isinstance(value, list) else []
    steps = set[Any]()
    for pair in pairs:
        match pair:
            case [int(step), loss] if is_number(step) and is_number(loss):
                steps.add(step)
            case _:
                return False
    return len(steps) == len(pairs) > 0


def _is_positive(value: object) -> bool:
    return type(value) is int and value > 0


def _without_dates(value: Any) -> Any:
    """The value, with dates as texts."""
    if isinstance(value, dict):
        return {key: _without_dates(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_without_dates(item) for item in cast("list[Any]", value)]
    return value.isoformat() if isinstance(value, date) else value


def _results(names: object, folder: Path) -> tuple[Sequence[Input], Sequence[Imported]]:
    """The files of other tools, one for each run."""
    listed = cast("list[Any]", names) if isinstance(names, list) else [None]
    if any(not isinstance(name, str) for name in listed):
        raise TomlFileError([f"results is {names!r}; it must be a list of paths, one for each run"])
    if 0 < len(listed) < FEWEST_RUNS:
        raise TomlFileError([f"results has {len(listed)} files; it needs one for each of at least {FEWEST_RUNS} runs"])
    inputs, results = list[Input](), list[Imported]()
    for name in cast("list[str]", listed):
        try:
            content = (folder / name).read_bytes()
            results.append(read_results(content.decode()))
        except (OSError, UnicodeDecodeError, ImportFileError) as error:
            raise TomlFileError([f"results: {name}: {error}"]) from error
        inputs.append(_input(Path(name).name, content))
        if (first := [file.sha256 for file in inputs].index(inputs[-1].sha256)) < len(inputs) - 1:
            raise TomlFileError([f"results: {name} equals {listed[first]}: each run needs a separate file"])
    return inputs, results


def _input(name: str, content: bytes) -> Input:
    return Input(path=name, sha256=sha256(content).hexdigest(), bytes=len(content))


def _prices(record: Record, list_usd: float | None) -> SidePrices:
    hardware = record.hardware
    return SidePrices(
        paid=hardware.usd_hour,
        list=list_usd,
        source=hardware.price_source or "",
        date=hardware.price_date or "",
        why_unknown="the file does not state this price",
    )


def _costs(record: Record, prices: SidePrices) -> Mapping[str, Metric]:
    """The costs by the stated throughput and prices. They have no interval if that of the throughput reaches 0."""
    rate = record.metrics.get(TOKENS_PER_SECOND)
    if rate is None or rate.value is None:
        return {}
    has_low = rate.low is not None and rate.low > 0
    why = rate.why_null if rate.low is None else None if has_low else f"the interval of {TOKENS_PER_SECOND} reaches 0"
    costs = dict[str, Metric]()
    for name, usd in ((USD_PAID, prices.paid), (USD_LIST, prices.list)):
        if usd is None:
            continue
        low, high = (usd_per_million(usd, end) if end and has_low else None for end in (rate.high, rate.low))
        costs[name] = replace(
            rate,
            value=usd_per_million(usd, rate.value),
            low=low,
            high=high,
            level=rate.level if has_low else None,
            unit="USD per million tokens",
            method=COST_FORMULA.format("tokens"),
            source=f"{rate.source}; price: {prices.source}",
            why_null=why,
        )
    return costs
