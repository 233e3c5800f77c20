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
    USD_PAID,
    MeasuredRun,
    SidePrices,
    imported_rates,
    run_metrics,
    usd_per_million,
)
from trainium_core.evidence.imports import Imported, ImportFileError, read_results
from trainium_core.evidence.metric import FEWEST_RUNS, QUOTED, Metric
from trainium_core.evidence.record import BENCH, SCHEMA, Input, Record, RecordedRun, RecordError, Tool
from trainium_core.evidence.toml_file import TomlFileError, parse_toml
from trainium_core.evidence.typed_json import JsonValueError, from_json

_OWN_KEYS = ("id", "side", "workload", "hardware", "software", "metrics", "warnings")


def imported_record(content: bytes, path: Path, *, made: str, tool: Tool) -> Record:
    """The record that a file describes with the keys of a record, and `results`.

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
    try:
        for metric in cast("dict[str, dict[str, Any]]", raw.get("metrics", {})).values():
            metric.setdefault("origin", QUOTED)
        started = {"kind": BENCH, "made": made, "tool": {"version": tool.version}}
        record = from_json({**started, **raw}, Record, schema=SCHEMA)
        inputs, results = _results(names, path.parent)
        runs = [MeasuredRun(run=RecordedRun(), rates=imported_rates([run]), imported=(run,)) for run in results]
        return replace(
            record,
            runs=tuple(run.run for run in runs),
            metrics={**_costs(record), **dict(run_metrics(runs, _prices(record)) if runs else ()), **record.metrics},
            inputs=(_input(path.name, content), *inputs),
            warnings=(*record.warnings, *dict.fromkeys(note for result in results for note in result.warnings)),
        )
    except (JsonValueError, RecordError, AttributeError) as error:
        raise TomlFileError([str(error)]) from error


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
    return inputs, results


def _input(name: str, content: bytes) -> Input:
    return Input(path=name, sha256=sha256(content).hexdigest(), bytes=len(content))


def _prices(record: Record) -> SidePrices:
    hardware = record.hardware
    return SidePrices(
        paid=hardware.usd_hour,
        list=None,
        source=hardware.price_source or "",
        date=hardware.price_date or "",
        why_unknown="the file does not state this price",
    )


def _costs(record: Record) -> Mapping[str, Metric]:
    """The cost by the stated throughput and price."""
    rate, usd = record.metrics.get(TOKENS_PER_SECOND), record.hardware.usd_hour
    if rate is None or rate.value is None or usd is None:
        return {}
    low, high = (None if end is None else usd_per_million(usd, end) for end in (rate.high, rate.low))
    cost = replace(
        rate,
        value=usd_per_million(usd, rate.value),
        low=low,
        high=high,
        unit="USD per million tokens",
        method=COST_FORMULA.format("tokens"),
    )
    return {USD_PAID: cost}
