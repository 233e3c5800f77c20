"""The metrics of a node for Prometheus: the text that the watch writes, and the server of this text."""

import json
import os
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.layout.repository import ROOT
from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.node_files import BUCKET, JOB
from tests.userdata.plans import plan_for
from tests.userdata.watch_node import FIRST, JobNode
from trainium_core.plan.node_settings import node_settings
from trainium_userdata.node.trn_node import files, gpu, prometheus
from trainium_userdata.node.trn_node.device_readings import SECONDS, Reading
from trainium_userdata.script import node_script
from trainium_wire.usage import NodeUsage

EXAMPLE = ROOT / "examples/prometheus"
HARDWARE_ERROR = "NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR nd-id=1 action=TERMINATE_INSTANCE"
NAMES = {name for name, _ in (*prometheus.GAUGES.values(), *prometheus.COUNTERS.values(), prometheus.JOB)}


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> JobNode:
    node = JobNode(tmp_path, aws, monkeypatch)
    node.plan(metrics_port=9400)
    return node


def pass_minute(node: JobNode, reading: Reading) -> dict[str, float]:
    """Let the tool report, and then a minute pass. Returns the exported metrics."""
    node.watch.usage.metrics.add(reading, node.now)
    node.pass_time(SECONDS)
    lines = [line for line in files.read(prometheus.TEXT).splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def report(node: JobNode, reading: Reading) -> None:
    """Let the tool report, and the watch read this at once."""
    node.watch.usage.metrics.add(reading, node.now)
    node.watch.usage.poll(f"s3://{BUCKET}/usage/{INSTANCE_ID}.json", "", node.now, attempt=None)


def test_values_have_base_units_and_counters_start_at_zero(node: JobNode) -> None:
    busy = Reading(core_utilization=50, memory_utilization=12.5, execution_errors=2, corrected={"0": 7})
    assert pass_minute(node, busy) == {
        "trn_core_utilization_ratio": 0.5,
        "trn_device_memory_used_ratio": 0.125,
        "trn_execution_errors_total": 2,
        "trn_corrected_memory_errors_total": 0,
        "trn_uncorrected_memory_errors_total": 0,
    }
    node.counter(1, "sram_ecc_uncorrected", 3)
    later = pass_minute(node, busy._replace(corrected={"0": 8}))
    assert later["trn_execution_errors_total"] == 4
    assert later["trn_corrected_memory_errors_total"] == 1
    assert later["trn_uncorrected_memory_errors_total"] == 3


def test_unknown_values_are_left_out_and_totals_continue(node: JobNode) -> None:
    pass_minute(node, Reading(core_utilization=50, execution_errors=2))
    assert pass_minute(node, Reading()).keys() == {"trn_uncorrected_memory_errors_total"}
    assert pass_minute(node, Reading(execution_errors=1))["trn_execution_errors_total"] == 3


def test_job_that_holds_the_node_is_a_label(node: JobNode) -> None:
    node.membership(FIRST)
    node.settle()
    node.submit()
    node.settle()
    assert pass_minute(node, Reading())[f'trn_job_info{{job_id="{JOB}"}}'] == 1


def test_hardware_error_is_sampled_and_reported_with_the_failed_record(node: JobNode) -> None:
    """The node may be terminated before the next minute."""
    pass_minute(node, Reading(core_utilization=50))
    node.counter(1, "mem_ecc_uncorrected", 1)
    node.kernel_says(HARDWARE_ERROR, 1)
    node.settle()
    assert node.sent is not None
    assert node.sent.state == "failed"
    assert "trn_uncorrected_memory_errors_total 1\n" in files.read(prometheus.TEXT)
    usage = NodeUsage.from_json(node.aws.records[f"{BUCKET}/usage/{INSTANCE_ID}.json"])
    assert usage.samples[-1].ecc_uncorrected == 1


def test_node_whose_sample_has_memory_errors_fails_at_once(node: JobNode) -> None:
    """Not when the counters are due again, up to a minute later: metrics and state of a node agree."""
    pass_minute(node, Reading(core_utilization=50))
    node.pass_time()
    node.counter(1, "mem_ecc_uncorrected", 1)
    report(node, Reading(core_utilization=60))
    node.pass_time()
    assert node.sent is not None
    assert node.sent.state == "failed"
    assert "trn_core_utilization_ratio 0.6\n" in files.read(prometheus.TEXT), "no further sample without utilization"


@pytest.mark.parametrize("result", ["succeeded", "failed"])
def test_counters_are_read_when_an_attempt_ends(node: JobNode, result: str) -> None:
    """The next attempt must not start on a node that has failed during the last one."""
    node.membership(FIRST)
    node.settle()
    node.submit(nodes=1, retries=2)
    node.settle()
    node.pass_time()
    node.counter(1, "mem_ecc_uncorrected", 1)
    node.end_attempt(result, joined=(0,), exit_code=3)
    node.pass_time(30)
    assert node.sent is not None
    assert node.sent.state == "failed"
    assert len(node.starts) == 1


def test_errors_that_s3_refused_are_sent_in_the_next_minute(node: JobNode) -> None:
    pass_minute(node, Reading(core_utilization=50))
    node.pass_time()
    node.counter(1, "mem_ecc_uncorrected", 1)
    node.aws.s3_refuses = True
    with pytest.raises(OSError, match="S3"):
        report(node, Reading(core_utilization=60))
    node.pass_time()
    assert node.record.state == "failed", "the counters are read at once"
    node.aws.s3_refuses = False
    node.pass_time(SECONDS)
    usage = NodeUsage.from_json(node.aws.records[f"{BUCKET}/usage/{INSTANCE_ID}.json"])
    assert 1 in [sample.ecc_uncorrected for sample in usage.samples]


def test_watch_of_failing_gpus_waits_for_nvidia_smi_once(node: JobNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvidia-smi hangs on broken GPUs, and the record of the failed node waits for it."""
    node.write(gpu.DRIVER, "580.126.09\n")
    node.pass_time()
    limits: list[float] = []

    def hang(seconds: float = gpu.SECONDS) -> dict[str, int]:
        limits.append(seconds)
        return {}

    monkeypatch.setattr(gpu, "error_counts", hang)
    for number in range(8):
        node.kernel_says(f"NVRM: Xid (PCI:0000:0{number}:00): 79, GPU has fallen off the bus.", number)
    node.watch.step()
    assert limits == [gpu.SHORT_SECONDS]


def test_last_sample_of_gpus_has_their_errors(node: JobNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvidia-smi may not report again before the node is terminated."""
    node.write(gpu.DRIVER, "580.126.09\n")
    counts = {"0": 0}

    def error_counts(_seconds: float) -> dict[str, int]:
        return dict(counts)

    monkeypatch.setattr(gpu, "error_counts", error_counts)
    pass_minute(node, Reading(uncorrected={"0": 0}))
    counts["0"] = 2
    node.watch.usage.metrics.add_now(node.now)
    [sample] = node.watch.usage.metrics.poll("", node.now)
    assert sample.ecc_uncorrected == 2


def test_nothing_is_written_and_no_unit_exists_without_a_port(node: JobNode) -> None:
    node.plan(metrics_port=None)
    assert pass_minute(node, Reading(core_utilization=50)) == {}
    with_port, without = (node_script(node_settings(plan_for("trn1.32xlarge", metrics_port=p))) for p in (9400, None))
    path = "/etc/systemd/system/trn-node-metrics.service"
    assert (path in with_port, path in without) == (True, False)
    assert '"metrics_port": 9400' in with_port


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("ROOT", str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), prometheus.MetricsHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def answer(url: str) -> tuple[int, str]:
    """The status, and the text or the type of the content."""
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            assert response.headers["Content-Type"] == prometheus.CONTENT_TYPE
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"]


def test_server_answers_with_the_current_text_only(url: str) -> None:
    assert answer(f"{url}/metrics")[0] == 503
    files.write(prometheus.TEXT, "trn_device_memory_used_ratio 0.5\n")
    assert answer(f"{url}/metrics") == (200, "trn_device_memory_used_ratio 0.5\n")
    assert answer(f"{url}/metrics?x=1")[0] == 200
    assert [answer(f"{url}/{path}")[0] for path in ("", "../etc/passwd", "metrics/x")] == [404] * 3
    old = files.path(prometheus.TEXT).stat().st_mtime - prometheus.LONGEST_AGE - 1
    os.utime(files.path(prometheus.TEXT), (old, old))
    assert answer(f"{url}/metrics")[0] == 503


def expressions() -> Iterator[str]:
    """The expressions of the example's rules and dashboard."""
    for group in yaml.safe_load((EXAMPLE / "trn-rules.yml").read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    dashboard: Any = json.loads((EXAMPLE / "grafana-dashboard.json").read_text())
    yield from (target["expr"] for panel in dashboard["panels"] for target in panel["targets"])


def test_example_uses_all_metrics_that_nodes_export_and_no_others() -> None:
    assert {name for text in expressions() for name in re.findall(r"\btrn_\w+", text)} == NAMES
