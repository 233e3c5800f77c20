"""Results of other tools, read from files in the formats that these tools write."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_core.evidence.imports import ImportFileError, read_results

FILES = Path(__file__).parent / "evidence_imports"


def text_of(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


RESULTS = sorted(file.name for file in FILES.iterdir() if file.suffix != ".md")


@pytest.mark.parametrize("name", RESULTS)
def test_file_of_a_tool_is_recognised_by_its_content(name: str) -> None:
    results = read_results(text_of(name))
    assert results.tool.replace("-", "_").replace(" ", "_").startswith(name.partition(".")[0])
    for metric in results.metrics.values():
        assert metric.value is None or (metric.origin, metric.source) == ("imported", results.tool)


def test_guidellm_has_rates_and_percentiles_in_seconds() -> None:
    results = read_results(text_of("guidellm.json"))
    raw = json.loads(text_of("guidellm.json"))["benchmarks"][0]["metrics"]
    assert results.tool == "guidellm 0.8.1"
    assert results.warnings == ()
    first = results.metrics["time_to_first_token_seconds_p99"]
    assert (first.value, first.n) == (raw["time_to_first_token_ms"]["successful"]["percentiles"]["p99"] / 1000, 400)
    assert results.metrics["requests_per_second"].value == raw["requests_per_second"]["successful"]["mean"]
    assert 0.005 < (results.metrics["inter_token_seconds_p50"].value or 0) < 0.02


def changed(name: str, *path: str | int, value: Any) -> str:
    raw = json.loads(text_of(name))
    place = raw
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(raw)


def test_percentile_of_too_few_requests_is_null() -> None:
    totals = ("benchmarks", 0, "metrics", "request_totals")
    results = read_results(
        changed("guidellm.json", *totals, value={"successful": 90, "errored": 7, "incomplete": 3, "total": 100})
    )
    assert results.metrics["request_seconds_p95"].value is not None
    assert results.metrics["request_seconds_p99"].why_null == "p99 of 90 samples: at least 368 are needed"
    assert results.warnings == ("10 of 100 requests failed and are not in the latencies",)


def test_aiperf_has_rates_and_percentiles_in_seconds() -> None:
    results = read_results(text_of("aiperf.json"))
    raw = json.loads(text_of("aiperf.json"))
    assert results.tool == "aiperf 0.13.0"
    last = results.metrics["request_seconds_p99"]
    assert (last.value, last.n) == (pytest.approx(raw["request_latency"]["p99"] / 1000), 400)
    assert results.metrics["output_tokens_per_second"].value == raw["output_token_throughput"]["avg"]
    stopped = read_results(changed("aiperf.json", "was_cancelled", value=True))
    assert stopped.warnings == ("aiperf was stopped before its end",)


def test_vllm_bench_has_the_percentiles_of_the_samples_in_the_file() -> None:
    results = read_results(text_of("vllm_bench.json"))
    assert results.metrics["output_tokens_per_second"].value == pytest.approx(811.4, abs=0.1)
    first = results.metrics["time_to_first_token_seconds_p99"]
    assert (first.n, first.value) == (400, pytest.approx(0.1738, abs=1e-3))
    assert results.metrics["inter_token_seconds_p99"].value is not None
    raw = json.loads(text_of("vllm_bench.json"))
    failed = {**raw, "errors": ["timeout"] * 100 + [""] * 300, "completed": 300, "failed": 100}
    results = read_results(json.dumps(failed))
    assert results.metrics["time_to_first_token_seconds_p50"].n == 300
    assert results.metrics["time_to_first_token_seconds_p99"].value is None
    assert results.warnings == ("100 of 400 requests failed and are not in the latencies",)


def test_lm_eval_has_the_interval_of_the_standard_error() -> None:
    metric = read_results(text_of("lm_eval.json")).metrics["sums.acc"]
    assert (metric.value, metric.n, metric.level) == (0.275, 40, 0.95)
    assert (metric.low, metric.high) == (pytest.approx(0.275 - 1.96 * 0.0715, abs=1e-3), pytest.approx(0.415, abs=1e-3))


def test_nccl_tests_has_the_bandwidth_of_the_largest_size_of_each_test() -> None:
    results = read_results(text_of("nccl_tests.txt"))
    assert {name: metric.value for name, metric in results.metrics.items()} == {
        "bus_bandwidth.alltoall": 23.77,
        "bus_bandwidth.sendrecv": 23.73,
    }
    assert results.metrics["bus_bandwidth.alltoall"].method == "bus bandwidth at 17179869184 bytes"
    wrong = text_of("nccl_tests.txt").replace("23.77      0   360597", "23.77      5   360597")
    assert read_results(wrong).warnings == ("5 values were wrong",)


def test_json_of_nccl_tests_has_the_bandwidth_of_the_largest_size() -> None:
    (result,) = read_results(text_of("nccl_tests.json")).metrics.items()
    assert (result[0], result[1].value, result[1].method) == (
        "bus_bandwidth.all_reduce",
        21.36,
        "bus bandwidth at 33554432 bytes",
    )
    assert result[1].source == "nccl-tests with NCCL 22703"
    in_place = read_results(changed("nccl_tests.json", "results", 2, "out_of_place", value=None))
    assert in_place.metrics["bus_bandwidth.all_reduce"].value == pytest.approx(21.26)
    wrong = read_results(changed("nccl_tests.json", "results", 0, "out_of_place", "nwrong", value=5.0))
    assert wrong.warnings == ("5 values were wrong",)


RANKS = {
    "mpirun --tag-output": "[1,0]<stdout>:",
    "mpirun of Open MPI 5": "[prterun-node-1@1,0]<stdout>: ",
    "srun --label": " 0: ",
}


@pytest.mark.parametrize("launcher", RANKS)
def test_nccl_table_is_read_with_the_rank_before_each_line(launcher: str) -> None:
    lines = text_of("nccl_tests.txt").splitlines()
    # Some scripts print only the end of the header.
    lines = [line for line in lines if not line.startswith("# nThread")]
    printed = "".join(f"{RANKS[launcher]}{line}\n" for line in lines)
    assert read_results(printed) == read_results(text_of("nccl_tests.txt"))


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", "hello", '{"results": []}', '{"results": {"a": 1}}', "[" * 100_000]
)
def test_file_of_no_known_tool_is_refused(text: str) -> None:
    with pytest.raises(ImportFileError, match="it is not a file of guidellm"):
        read_results(text)


@pytest.mark.parametrize(
    ("name", "key", "tool"),
    [("nccl_tests.json", "nccl_version", "nccl-tests"), ("vllm_bench.json", "request_throughput", "vllm bench serve")],
)
def test_file_with_a_wrong_value_is_refused_and_its_tool_is_named(name: str, key: str, tool: str) -> None:
    broken = json.loads(text_of(name)) | {"results": None, key: None}
    with pytest.raises(ImportFileError, match=f"^it looks like a file of {tool}, but cannot be read"):
        read_results(json.dumps(broken))


def test_sweep_of_guidellm_is_refused_with_a_fix() -> None:
    benchmarks = json.loads(text_of("guidellm.json"))["benchmarks"] * 2
    with pytest.raises(ImportFileError, match="run guidellm with one rate for each file"):
        read_results(changed("guidellm.json", "benchmarks", value=benchmarks))


@given(st.sampled_from(RESULTS), st.floats(0, 1))
def test_truncated_file_is_refused_or_has_metrics(name: str, share: float) -> None:
    text = text_of(name).rstrip()
    try:
        results = read_results(text[: int(share * (len(text) - 1))])
    except ImportFileError:
        return
    assert name == "nccl_tests.txt"
    assert results.metrics


def keys_of(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value))
    return list(range(len(cast("list[Any]", value)))) if isinstance(value, list) else []


@given(
    st.sampled_from([name for name in RESULTS if name.endswith(".json")]),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3), st.lists, max_leaves=3),
    st.data(),
)
def test_value_of_any_type_is_read_or_refused(name: str, value: Any, data: st.DataObject) -> None:
    raw: Any = json.loads(text_of(name))
    place: Any = raw
    while True:
        key = data.draw(st.sampled_from(keys_of(place)))
        if not keys_of(place[key]) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = value
    with suppress(ImportFileError):
        read_results(json.dumps(raw))
