"""Reads result files of other tools, recognised by their content, into metrics with the origin "imported".

Times are converted to seconds. A percentile of too few samples is null. Intervals are computed over the runs.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, cast

from trainium_core.evidence.metric import IMPORTED, Metric, unknown
from trainium_core.evidence.statistics import LEVEL, NORMAL_975, PERCENTILES, fewest_samples, percentile, too_few

Json = Mapping[str, Any]

_UNITS = {
    "ms": ("s", 1e-3),
    "sec": ("s", 1.0),
    "requests/sec": ("requests/s", 1.0),
    "tokens/sec": ("tokens/s", 1.0),
}


class ImportFileError(ValueError):
    """Not a result of a known tool. The message is a sentence without a period."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """The contents of a result file of another tool.

    Attributes:
        tool: The name of the tool, with its version if the file has it.
        metrics: Metrics by name.
        warnings: What readers must know about the numbers, such as failed requests.
    """

    tool: str
    metrics: Mapping[str, Metric]
    warnings: tuple[str, ...] = ()

    def with_prefix(self, prefix: str) -> "Imported":
        """The same result, with the prefix and a period before each name of a metric."""
        return replace(self, metrics={f"{prefix}.{name}": metric for name, metric in self.metrics.items()})


def read_results(text: str) -> Imported:
    """Read the results in the text of a file.

    Raises:
        ImportFileError: No known tool writes such a file, or it cannot be read, or it has no results.
    """
    printed = _RANK.sub("", text)
    parsed: Any = {_NCCL_TABLE: printed} if _NCCL_HEADER.search(printed) else None
    if parsed is None:
        with suppress(ValueError, RecursionError):
            parsed = json.loads(text)
    raw: Json = cast("Json", parsed) if isinstance(parsed, dict) else {}
    tool, reader = next(((tool, reader) for tool, recognises, reader in _READERS if recognises(raw)), ("", None))
    if reader is None:
        raise ImportFileError(f"it is not a file of {KNOWN}")
    try:
        results = reader(raw)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ImportFileError(f"it looks like a file of {tool}, but cannot be read: {error!r}") from error
    if not results.metrics:
        raise ImportFileError(f"it is a file of {results.tool} without results")
    return results


def _imported(tool: str, value: float, unit: str, **more: Any) -> Metric:
    if not math.isfinite(float(value)):
        raise ValueError(f"a number is {value}")
    return Metric(value=float(value), unit=unit, origin=IMPORTED, source=tool, **more)


def _percentiles(
    name: str, values: Mapping[float, float | None], n: int, tool: str, unit: str, scale: float
) -> Iterator[tuple[str, Metric]]:
    """Percentiles of a file; null if it has too few samples."""
    for quantile, value in values.items():
        key = f"{name}_p{100 * quantile:g}"
        if n < fewest_samples(quantile):
            yield key, unknown(unit, too_few(n, quantile, fewest_samples(quantile)), n=n)
        elif value is not None:
            yield key, _imported(tool, value * scale, unit, n=n)


def _failed(failed: int, all_requests: int) -> tuple[str, ...]:
    return (f"{failed} of {all_requests} requests failed and are not in the latencies",) if failed else ()


def _guidellm(raw: Json) -> Imported:
    """The file of guidellm 0.5 to 0.8, which must have one benchmark: a sweep has several."""
    benchmarks = raw["benchmarks"]
    if len(benchmarks) != 1:
        raise ValueError(f"it has {len(benchmarks)} benchmarks: run guidellm with one rate for each file")
    summaries, tool = benchmarks[0]["metrics"], f"guidellm {raw['metadata']['guidellm_version']}"
    totals = summaries["request_totals"]
    metrics: dict[str, Metric] = {}
    for name, unit in (("requests_per_second", "requests/s"), ("output_tokens_per_second", "tokens/s")):
        metrics[name] = _imported(tool, summaries[name]["successful"]["mean"], unit, n=totals["successful"])
    for theirs, ours, scale in (
        ("request_latency", "request_seconds", 1.0),
        ("time_to_first_token_ms", "time_to_first_token_seconds", 1e-3),
        ("inter_token_latency_ms", "inter_token_seconds", 1e-3),
    ):
        summary = summaries[theirs]["successful"]
        values = {quantile: summary["percentiles"][f"p{100 * quantile:02.0f}"] for quantile in PERCENTILES}
        # The summary of latencies between tokens counts tokens, which are not independent: the requests count.
        n = min(summary["count"], totals["successful"])
        metrics.update(_percentiles(ours, values, n, tool, "s", scale))
    failed = totals["errored"] + totals["incomplete"]
    return Imported(tool=tool, metrics=metrics, warnings=_failed(failed, totals["total"]))


def _aiperf(raw: Json) -> Imported:
    tool = f"aiperf {raw.get('aiperf_version') or raw['schema_version']}"
    n = int(raw["request_count"]["avg"])
    metrics: dict[str, Metric] = {}
    for theirs, ours in (
        ("request_throughput", "requests_per_second"),
        ("output_token_throughput", "output_tokens_per_second"),
        ("goodput", "good_requests_per_second"),
    ):
        if theirs in raw:
            unit, scale = _UNITS[raw[theirs]["unit"]]
            metrics[ours] = _imported(tool, raw[theirs]["avg"] * scale, unit, n=n)
    for theirs, ours in (
        ("request_latency", "request_seconds"),
        ("time_to_first_token", "time_to_first_token_seconds"),
        ("inter_token_latency", "inter_token_seconds"),
    ):
        if theirs in raw:
            unit, scale = _UNITS[raw[theirs]["unit"]]
            values = {quantile: raw[theirs].get(f"p{100 * quantile:g}") for quantile in PERCENTILES}
            metrics.update(_percentiles(ours, values, n, tool, unit, scale))
    errors: Sequence[Json] = raw.get("error_summary") or []
    failed = sum(int(error["count"]) for error in errors)
    is_whole = not raw.get("was_cancelled") and raw.get("is_complete", True)
    stopped = () if is_whole else ("aiperf was stopped before its end",)
    return Imported(tool=tool, metrics=metrics, warnings=(*_failed(failed, n + failed), *stopped))


def _vllm_bench(raw: Json) -> Imported:
    tool, n = "vllm bench serve", int(raw["completed"])
    metrics = {
        "requests_per_second": _imported(tool, raw["request_throughput"], "requests/s", n=n),
        "output_tokens_per_second": _imported(tool, raw["output_throughput"], "tokens/s", n=n),
    }
    for theirs, ours, samples in (
        ("ttft", "time_to_first_token_seconds", "ttfts"),
        ("itl", "inter_token_seconds", None),
        ("e2el", "request_seconds", "latencies"),
    ):
        latencies: Sequence[float] = _success_metrics(raw, samples) if samples else ()
        if latencies:
            exact = {quantile: percentile(latencies, quantile) for quantile in PERCENTILES}
            metrics.update(_percentiles(ours, exact, len(latencies), tool, "s", 1.0))
            continue
        values = {0.5: raw.get(f"median_{theirs}_ms"), 0.95: raw.get(f"p95_{theirs}_ms")}
        values |= {0.99: raw.get(f"p99_{theirs}_ms")}
        if any(value is not None for value in values.values()):
            metrics.update(_percentiles(ours, values, n, tool, "s", 1e-3))
    failed = int(raw.get("failed", 0))
    return Imported(tool=tool, metrics=metrics, warnings=_failed(failed, n + failed))


def _success_metrics(raw: Json, samples: str) -> Sequence[float]:
    """One value per request that did not fail; empty if the file was saved without --save-detailed."""
    values: Sequence[float] = raw.get(samples) or []
    errors: Sequence[str] = raw.get("errors") or []
    return [value for value, error in zip(values, errors, strict=True) if not error]


def _lm_eval(raw: Json) -> Imported:
    """Every metric of every task, with the interval of its standard error."""
    tool = f"lm-eval {raw['lm_eval_version']}"
    metrics: dict[str, Metric] = {}
    for task, results in raw["results"].items():
        n = raw.get("n-samples", {}).get(task, {}).get("effective")
        for key, value in results.items():
            name, _, filter_name = key.partition(",")
            if not filter_name or name.endswith("_stderr") or not isinstance(value, int | float):
                continue
            error = results.get(f"{name}_stderr,{filter_name}")
            interval: dict[str, Any] = {"why_null": "the file has no standard error"}
            if isinstance(error, int | float) and math.isfinite(error):
                half = NORMAL_975 * error
                method = "normal, from the standard error of the file"
                interval = {"low": value - half, "high": value + half, "level": LEVEL, "method": method}
            suffix = "" if filter_name == "none" else f".{filter_name}"
            metrics[f"{task}.{name}{suffix}"] = _imported(tool, value, "score", n=n, **interval)
    return Imported(tool=tool, metrics=metrics)


_NCCL_TABLE = "table of nccl-tests"
"""Key of the text of a file with the table that nccl-tests prints."""

_RANK = re.compile(r"^(?:\[[^\]\n]*,\d+\]<std(?:out|err)>: ?| *\d+: )", re.MULTILINE)
"""What mpirun --tag-output and srun --label print before each line, such as `[1,0]<stdout>:` and ` 0: `."""

_NCCL_HEADER = re.compile(r"^ *# +size +count +type +redop +root +time +algbw +busbw ", re.MULTILINE)
_NCCL_TEST = re.compile(r"^# Collective test starting: (\w+)", re.MULTILINE)
_NCCL_ROW = re.compile(
    r"^ *(?P<size>\d+) +\d+ +\w+ +\w+ +-?\d+ +[\d.]+ +[\d.]+ +(?P<busbw>[\d.]+) +(?P<wrong>\d+|N/A)", re.MULTILINE
)


def _nccl_tests(raw: Json) -> Imported:
    """The table that nccl-tests prints: out-of-place bus bandwidth of the largest size of each test."""
    tool, metrics, wrong, text = "nccl-tests", dict[str, Metric](), 0, str(raw[_NCCL_TABLE])
    parts = _NCCL_TEST.split(text)
    tables = list(zip(parts[1::2], parts[2::2], strict=True)) or [("collective", text)]
    for test, table in tables:
        rows = [*_NCCL_ROW.finditer(table)]
        wrong += sum(int(row["wrong"]) for row in rows if row["wrong"] != "N/A")
        if rows:
            largest = max(rows, key=lambda row: int(row["size"]))
            name, size = test.removesuffix("_perf"), int(largest["size"])
            metrics[f"bus_bandwidth.{name}"] = _bandwidth(tool, float(largest["busbw"]), size)
    return Imported(tool=tool, metrics=metrics, warnings=(f"{wrong} values were wrong",) if wrong else ())


def _nccl_tests_json(raw: Json) -> Imported:
    """The file of nccl-tests' option -J: out-of-place bus bandwidth of the largest size, else in-place."""
    tool = f"nccl-tests with NCCL {raw['nccl_version']}"
    rows = [(row["size"], row.get("out_of_place") or row["in_place"]) for row in raw["results"]]
    wrong = sum(int(numbers["nwrong"] or 0) for _, numbers in rows)
    name = PurePosixPath(raw["args"][0]).name.removesuffix("_perf")
    metrics = dict[str, Metric]()
    if rows:
        size, numbers = max(rows, key=lambda row: row[0])
        metrics[f"bus_bandwidth.{name}"] = _bandwidth(tool, float(numbers["bus_bw"]), size)
    return Imported(tool=tool, metrics=metrics, warnings=(f"{wrong} values were wrong",) if wrong else ())


def _bandwidth(tool: str, value: float, size: int) -> Metric:
    why = "the file has only the mean of the iterations"
    return _imported(tool, value, "GB/s", method=f"bus bandwidth at {size} bytes", why_null=why)


def _has(*keys: str) -> Callable[[Json], bool]:
    return lambda raw: all(key in raw for key in keys)


def _is_guidellm(raw: Json) -> bool:
    metadata = raw.get("metadata")
    return "benchmarks" in raw and isinstance(metadata, dict) and "guidellm_version" in metadata


_READERS: Sequence[tuple[str, Callable[[Json], bool], Callable[[Json], Imported]]] = (
    ("nccl-tests", _has(_NCCL_TABLE), _nccl_tests),
    ("guidellm", _is_guidellm, _guidellm),
    ("aiperf", _has("schema_version", "request_latency", "request_count"), _aiperf),
    ("vllm bench serve", _has("completed", "request_throughput", "model_id", "num_prompts"), _vllm_bench),
    ("lm-eval", _has("results", "lm_eval_version"), _lm_eval),
    ("nccl-tests", _has("nccl_version", "results"), _nccl_tests_json),
)
"""Tool, recognition and reader; the first that recognises a file reads it."""

KNOWN = "guidellm, aiperf, vllm bench serve, lm-eval or nccl-tests"
