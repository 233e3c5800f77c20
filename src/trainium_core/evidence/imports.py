"""Reads results of other tools, which it recognises by their content, into metrics with the origin "imported".

Values are converted to seconds and tokens per second. A percentile keeps the name of the tool's own value; it
has an interval only if the file contains the samples. Too few samples make it null, as in our own measurements.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, cast

from trainium_core.evidence.record import IMPORTED, Metric, unknown
from trainium_core.evidence.statistics import LEVEL, fewest_samples, percentile, too_few

Json = Mapping[str, Any]
Metrics = Mapping[str, Metric]

PERCENTILES = (0.50, 0.95, 0.99)
_NORMAL_975 = 1.96

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
    """What a file of another tool says.

    Attributes:
        tool: Its name, with its version if the file has it.
        workload: Fields of a record's workload that the file states.
        warnings: What a reader has to know about the numbers, such as failed requests.
    """

    tool: str
    metrics: Metrics
    workload: Mapping[str, Any] = field(default_factory=dict[str, Any])
    warnings: tuple[str, ...] = ()

    def named(self, name: str) -> "Imported":
        """With names of metrics that begin with the name of the file."""
        return replace(self, metrics={f"{name}.{key}": metric for key, metric in self.metrics.items()})


def read_results(text: str) -> Imported:
    """Raises ImportFileError for a file of no known tool, and for one whose content is not as the tool writes it."""
    reader = _reader(text)
    try:
        found = reader(text)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        name = reader.__name__.strip("_").replace("_", "-")
        raise ImportFileError(f"it looks like a file of {name}, but cannot be read: {error!r}") from error
    if not found.metrics:
        raise ImportFileError(f"it is a file of {found.tool} without results")
    return found


def _reader(text: str) -> Callable[[str], Imported]:
    if _NCCL_HEADER.search(text):
        return _nccl_tests
    try:
        raw: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise ImportFileError(f"it is not a file of {KNOWN}") from None
    given: Json = cast("Json", raw) if isinstance(raw, dict) else {}
    for reader, recognises in _READERS.items():
        if recognises(given):
            return reader
    raise ImportFileError(f"it is not a file of {KNOWN}")


def _imported(tool: str, value: float, unit: str, **more: Any) -> Metric:
    if not math.isfinite(float(value)):
        raise ValueError(f"a number is {value}")
    return Metric(value=float(value), unit=unit, origin=IMPORTED, source=tool, **more)


def _percentiles(
    name: str, values: Mapping[float, float | None], n: int, tool: str, unit: str, scale: float
) -> Iterator[tuple[str, Metric]]:
    """The percentiles that the tool has computed; null where there are too few samples for an upper bound."""
    for quantile, value in values.items():
        key = f"{name}_p{100 * quantile:g}"
        if n < fewest_samples(quantile):
            yield key, unknown(unit, too_few(n, quantile), n=n)
        elif value is not None:
            why = "the file has no samples to compute an interval of"
            yield key, _imported(tool, value * scale, unit, n=n, why_null=why)


def _failed(failed: int, all_requests: int) -> tuple[str, ...]:
    return (f"{failed} of {all_requests} requests failed and are not in the latencies",) if failed else ()


def _guidellm(text: str) -> Imported:
    """guidellm 0.5 to 0.8: a file with one benchmark. A sweep has to be split."""
    raw = json.loads(text)
    benchmarks = raw["benchmarks"]
    if len(benchmarks) != 1:
        raise ValueError(f"it has {len(benchmarks)} benchmarks: run guidellm with one rate for each file")
    metrics, tool = benchmarks[0]["metrics"], f"guidellm {raw['metadata']['guidellm_version']}"
    totals = metrics["request_totals"]
    found: dict[str, Metric] = {}
    for theirs, ours, unit in (
        ("requests_per_second", "requests_per_second", "requests/s"),
        ("output_tokens_per_second", "output_tokens_per_second", "tokens/s"),
    ):
        found[ours] = _imported(tool, metrics[theirs]["successful"]["mean"], unit, n=totals["successful"])
    for theirs, ours, scale in (
        ("request_latency", "request_seconds", 1.0),
        ("time_to_first_token_ms", "time_to_first_token_seconds", 1e-3),
        ("inter_token_latency_ms", "inter_token_seconds", 1e-3),
    ):
        summary = metrics[theirs]["successful"]
        values = {one: summary["percentiles"][f"p{100 * one:02.0f}"] for one in PERCENTILES}
        # The summary of latencies between tokens counts tokens, which are not independent: the requests count.
        n = min(summary["count"], totals["successful"])
        found.update(_percentiles(ours, values, n, tool, "s", scale))
    return Imported(
        tool=tool, metrics=found, warnings=_failed(totals["errored"] + totals["incomplete"], totals["total"])
    )


def _aiperf(text: str) -> Imported:
    raw = json.loads(text)
    tool = f"aiperf {raw.get('aiperf_version') or raw['schema_version']}"
    n = int(raw["request_count"]["avg"])
    found: dict[str, Metric] = {}
    for theirs, ours in (
        ("request_throughput", "requests_per_second"),
        ("output_token_throughput", "output_tokens_per_second"),
        ("goodput", "good_requests_per_second"),
    ):
        if theirs in raw:
            unit, scale = _UNITS[raw[theirs]["unit"]]
            found[ours] = _imported(tool, raw[theirs]["avg"] * scale, unit, n=n)
    for theirs, ours in (
        ("request_latency", "request_seconds"),
        ("time_to_first_token", "time_to_first_token_seconds"),
        ("inter_token_latency", "inter_token_seconds"),
    ):
        if theirs in raw:
            unit, scale = _UNITS[raw[theirs]["unit"]]
            values = {one: raw[theirs].get(f"p{100 * one:g}") for one in PERCENTILES}
            found.update(_percentiles(ours, values, n, tool, unit, scale))
    errors: Sequence[Json] = raw.get("error_summary") or []
    failed = sum(int(one["count"]) for one in errors)
    is_whole = not raw.get("was_cancelled") and raw.get("is_complete", True)
    stopped = () if is_whole else ("aiperf was stopped before its end",)
    return Imported(tool=tool, metrics=found, warnings=(*_failed(failed, n + failed), *stopped))


def _vllm_bench(text: str) -> Imported:
    raw = json.loads(text)
    tool, n = "vllm bench serve", int(raw["completed"])
    found = {
        "requests_per_second": _imported(tool, raw["request_throughput"], "requests/s", n=n),
        "output_tokens_per_second": _imported(tool, raw["output_throughput"], "tokens/s", n=n),
    }
    for theirs, ours, samples in (
        ("ttft", "time_to_first_token_seconds", "ttfts"),
        ("itl", "inter_token_seconds", None),
        ("e2el", "request_seconds", "latencies"),
    ):
        drawn: Sequence[float] = _of_successes(raw, samples) if samples else ()
        if drawn:
            for one in PERCENTILES:
                found[f"{ours}_p{100 * one:g}"] = percentile(drawn, one, "s", origin=IMPORTED, source=tool)
            continue
        values = {0.5: raw.get(f"median_{theirs}_ms"), 0.95: raw.get(f"p95_{theirs}_ms")}
        values |= {0.99: raw.get(f"p99_{theirs}_ms")}
        if any(value is not None for value in values.values()):
            found.update(_percentiles(ours, values, n, tool, "s", 1e-3))
    failed = int(raw.get("failed", 0))
    return Imported(tool=tool, metrics=found, workload={"model": raw["model_id"]}, warnings=_failed(failed, n + failed))


def _of_successes(raw: Json, samples: str) -> Sequence[float]:
    """One value per request that did not fail; empty in a file without --save-detailed."""
    values: Sequence[float] = raw.get(samples) or []
    errors: Sequence[str] = raw.get("errors") or []
    return [value for value, error in zip(values, errors, strict=True) if not error]


def _lm_eval(text: str) -> Imported:
    """Every metric of every task, with the interval of its standard error."""
    raw = json.loads(text)
    tool = f"lm-eval {raw['lm_eval_version']}"
    found: dict[str, Metric] = {}
    for task, results in raw["results"].items():
        n = raw.get("n-samples", {}).get(task, {}).get("effective")
        for key, value in results.items():
            name, _, filtered = key.partition(",")
            if not filtered or name.endswith("_stderr") or not isinstance(value, int | float):
                continue
            error = results.get(f"{name}_stderr,{filtered}")
            interval: dict[str, Any] = {"why_null": "the file has no standard error"}
            if isinstance(error, int | float) and math.isfinite(error):
                half = _NORMAL_975 * error
                method = "normal, from the standard error of the file"
                interval = {"low": value - half, "high": value + half, "level": LEVEL, "method": method}
            suffix = "" if filtered == "none" else f".{filtered}"
            found[f"{task}.{name}{suffix}"] = _imported(tool, value, "score", n=n, **interval)
    return Imported(tool=tool, metrics=found, workload={"model": raw.get("model_name")})


_NCCL_HEADER = re.compile(r"^# nThread +\d+ +nGpus +\d+ ", re.MULTILINE)
_NCCL_TEST = re.compile(r"^# Collective test starting: (\w+)", re.MULTILINE)
_NCCL_ROW = re.compile(
    r"^ *(?P<size>\d+) +\d+ +\w+ +\w+ +-?\d+ +[\d.]+ +[\d.]+ +(?P<busbw>[\d.]+) +(?P<wrong>\d+|N/A)", re.MULTILINE
)


def _nccl_tests(text: str) -> Imported:
    """The table that nccl-tests prints: out-of-place bus bandwidth of the largest size of each test."""
    tool, found, wrong = "nccl-tests", dict[str, Metric](), 0
    parts = _NCCL_TEST.split(text)
    named = list(zip(parts[1::2], parts[2::2], strict=True)) or [("collective", text)]
    for test, part in named:
        rows = [*_NCCL_ROW.finditer(part)]
        wrong += sum(int(row["wrong"]) for row in rows if row["wrong"] != "N/A")
        if rows:
            largest = max(rows, key=lambda row: int(row["size"]))
            name, size = test.removesuffix("_perf"), int(largest["size"])
            found[f"bus_bandwidth.{name}"] = _bandwidth(tool, float(largest["busbw"]), size)
    return Imported(tool=tool, metrics=found, warnings=(f"{wrong} values were wrong",) if wrong else ())


def _nccl_tests_json(text: str) -> Imported:
    """The file of nccl-tests' option -J: out-of-place bus bandwidth of the largest size, else in-place."""
    raw = json.loads(text)
    tool = f"nccl-tests with NCCL {raw['nccl_version']}"
    rows = [(row["size"], row.get("out_of_place") or row["in_place"]) for row in raw["results"]]
    wrong = sum(int(numbers["nwrong"] or 0) for _, numbers in rows)
    name = PurePosixPath(raw["args"][0]).name.removesuffix("_perf")
    found = dict[str, Metric]()
    if rows:
        size, numbers = max(rows, key=lambda row: row[0])
        found[f"bus_bandwidth.{name}"] = _bandwidth(tool, float(numbers["bus_bw"]), size)
    return Imported(tool=tool, metrics=found, warnings=(f"{wrong} values were wrong",) if wrong else ())


def _nccom_test(text: str) -> Imported:
    """The file of --report-to-json-file, which does not name the operation."""
    tool = "nccom-test"
    largest = max(json.loads(text)["results"], key=lambda row: row["size(B)"])
    return Imported(
        tool=tool,
        metrics={"bus_bandwidth": _bandwidth(tool, largest["busbw(GB/s)"], largest["size(B)"])},
        warnings=("the file does not name the collective operation",),
    )


def _bandwidth(tool: str, value: float, size: int) -> Metric:
    why = "the file has only the mean of the iterations"
    return _imported(tool, value, "GB/s", method=f"bus bandwidth at {size} bytes", why_null=why)


def _has(*keys: str) -> Callable[[Json], bool]:
    return lambda raw: all(key in raw for key in keys)


def _is_guidellm(raw: Json) -> bool:
    metadata = raw.get("metadata")
    return "benchmarks" in raw and isinstance(metadata, dict) and "guidellm_version" in metadata


def _is_nccom_test(raw: Json) -> bool:
    found = raw.get("results")
    rows = cast("list[Any]", found) if isinstance(found, list) else []
    return bool(rows) and isinstance(rows[0], dict) and "busbw(GB/s)" in rows[0]


_READERS: Mapping[Callable[[str], Imported], Callable[[Json], bool]] = {
    _guidellm: _is_guidellm,
    _aiperf: _has("schema_version", "request_latency", "request_count"),
    _vllm_bench: _has("completed", "request_throughput", "model_id", "num_prompts"),
    _lm_eval: _has("results", "lm_eval_version"),
    _nccl_tests_json: _has("nccl_version", "results"),
    _nccom_test: _is_nccom_test,
}

KNOWN = "guidellm, aiperf, vllm bench serve, lm-eval, nccl-tests or nccom-test"
