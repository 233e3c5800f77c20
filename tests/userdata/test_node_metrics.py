"""The metrics of a node: what the tools report, and the samples in the usage record."""

import copy
import json
import os
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.node_files import BUCKET, JOB
from tests.userdata.watch_node import FIRST, SECOND, JobNode
from trainium_userdata.node.trn_node import device_readings, files
from trainium_userdata.node.trn_node.device_readings import (
    SECONDS,
    Reading,
    gpu_reading,
    neuron_reading,
    neuron_readings,
)
from trainium_userdata.node.trn_node.metrics import JOB_METRICS
from trainium_wire.metric_sample import MAX_SAMPLES, MetricSample, Utilization, utilization
from trainium_wire.usage import NodeUsage

DOCUMENTED: Any = json.loads((Path(__file__).parent / "data/neuron_monitor.json").read_text())["report"]


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> JobNode:
    return JobNode(tmp_path, aws, monkeypatch)


def pass_minutes(node: JobNode, *readings: Reading) -> None:
    """Let the tool report, and then a minute pass, for each reading."""
    for reading in readings:
        node.watch.usage.metrics.add(reading, node.now)
        node.pass_time(SECONDS)


def taken(node: JobNode) -> list[MetricSample]:
    return list(node.watch.usage.metrics.samples)


def efa(device: str, **counters: int) -> None:
    for name, count in counters.items():
        files.write(f"sys/class/infiniband/{device}/ports/1/hw_counters/{name}", f"{count}\n")


def test_documented_report_is_read() -> None:
    reading = neuron_reading(DOCUMENTED, cores=4)
    assert reading.core_utilization == 21.01
    assert reading.memory_utilization == 0.76
    assert reading.execution_errors == 0
    assert reading.corrected == {"0 mem_ecc_corrected": 0, "0 sram_ecc_corrected": 0}


def test_node_without_neuron_process_is_idle_and_not_unknown() -> None:
    reading = neuron_reading({**DOCUMENTED, "neuron_runtime_data": []}, cores=4)
    assert reading[:3] == (0, 0, 0)


def test_device_memory_is_read_under_its_observed_name() -> None:
    report = copy.deepcopy(DOCUMENTED)
    used = report["neuron_runtime_data"][0]["report"]["memory_used"]["neuron_runtime_used_bytes"]
    used["device"] = used.pop("neuron_device")
    assert neuron_reading(report, cores=4).memory_utilization == neuron_reading(DOCUMENTED, cores=4).memory_utilization


def test_executions_that_fail_or_compute_nan_are_errors() -> None:
    report = copy.deepcopy(DOCUMENTED)
    stats = report["neuron_runtime_data"][0]["report"]["execution_stats"]
    stats["execution_summary"].update(timed_out=2, completed_with_num_err=1)
    assert neuron_reading(report, cores=4).execution_errors == 3


def test_process_that_cannot_be_read_hides_no_errors_of_others() -> None:
    report = copy.deepcopy(DOCUMENTED)
    (process,) = report["neuron_runtime_data"]
    process["report"]["execution_stats"]["execution_summary"].update(timed_out=2)
    report["neuron_runtime_data"].append({**copy.deepcopy(process), "error": "timed out"})
    assert neuron_reading(report, cores=4)[:3] == (None, None, 2)


@pytest.mark.parametrize("group", ["neuroncore_counters", "memory_used", "execution_stats"])
def test_group_with_an_error_is_unknown(group: str) -> None:
    report = copy.deepcopy(DOCUMENTED)
    report["neuron_runtime_data"][0]["report"][group]["error"] = "timed out"
    position = device_readings.RUNTIME_GROUPS.index(group)
    assert [value is None for value in neuron_reading(report, cores=4)[:3]] == [i == position for i in range(3)]


@pytest.mark.parametrize(
    "report",
    [
        None,
        [],
        {},
        {"neuron_runtime_data": None},
        {**DOCUMENTED, "neuron_hardware_info": {"error": "no driver"}},
        {**DOCUMENTED, "neuron_runtime_data": [None], "system_data": {"neuron_hw_counters": {"error": "no"}}},
    ],
)
def test_report_without_content_is_unknown(report: Any) -> None:
    assert neuron_reading(report, cores=4) == Reading()


def test_gpus_are_read_and_not_available_is_unknown() -> None:
    printed = "0, 90, 1000, 4000, 2, 0\n1, 30, 3000, 4000, 0, 1\n"
    assert gpu_reading(printed) == Reading(60, 50, None, {"0": 2, "1": 0}, {"0": 0, "1": 1})
    unknown = gpu_reading(printed.replace("90", "[N/A]").replace("4000, 0, 1", "4000, [N/A], [N/A]"))
    assert (unknown.core_utilization, unknown.uncorrected) == (None, {"0": 0})
    assert gpu_reading("No devices were found\n") == Reading()


def test_samples_are_in_the_usage_record(node: JobNode) -> None:
    pass_minutes(node, *[Reading(core_utilization=98.76) for _ in range(12)])
    record = node.aws.records[f"{BUCKET}/usage/{INSTANCE_ID}.json"]
    sent = NodeUsage.from_json(record).samples
    assert len(sent) >= 8
    assert {sample.core_utilization for sample in sent} == {98.76}
    assert {(after.at - before.at).seconds for before, after in pairwise(sent)} == {SECONDS}


def test_number_of_samples_is_bounded(node: JobNode) -> None:
    pass_minutes(node, *[Reading(core_utilization=1)] * (MAX_SAMPLES + 5))
    assert len(taken(node)) == MAX_SAMPLES


def test_minute_without_a_report_is_unknown_and_never_zero(node: JobNode) -> None:
    pass_minutes(node, Reading(core_utilization=50))
    node.pass_time(4 * SECONDS)
    silent = taken(node)[1:]
    assert len(silent) >= 3
    assert {sample.core_utilization for sample in silent} == {None}
    assert {sample.ecc_uncorrected for sample in silent} == {0}, "the driver's counters are still read"


def test_late_report_leaves_no_gap(node: JobNode) -> None:
    pass_minutes(node, Reading(core_utilization=50))
    node.pass_time(SECONDS // 2)
    pass_minutes(node, Reading(core_utilization=60))
    assert [sample.core_utilization for sample in taken(node)] == [50, 60]


def test_increases_of_counters_are_sampled(node: JobNode) -> None:
    efa("rdmap0", tx_bytes=1000, rx_bytes=50, retrans_pkts=0)
    efa("rdmap1", tx_bytes=10, rx_bytes=50, retrans_pkts=7)
    pass_minutes(node, Reading(corrected={"0": 5}))
    efa("rdmap0", tx_bytes=1500, retrans_pkts=2)
    node.counter(1, "sram_ecc_uncorrected", 3)
    pass_minutes(node, Reading(corrected={"0": 6}))
    first, second = taken(node)
    assert (first.efa_sent_bytes, first.ecc_corrected, first.ecc_uncorrected) == (None, None, None)
    assert (second.efa_sent_bytes, second.efa_received_bytes, second.efa_retransmitted_packets) == (500, 0, 2)
    assert (second.ecc_corrected, second.ecc_uncorrected) == (1, 3)


def test_counter_of_a_reloaded_driver_has_not_increased(node: JobNode) -> None:
    pass_minutes(node, Reading(corrected={"0": 5}), Reading(corrected={"0": 0}))
    assert taken(node)[-1].ecc_corrected == 0


def test_sample_names_the_job_that_holds_the_node(node: JobNode) -> None:
    node.membership(FIRST)
    node.settle()
    node.submit()
    node.settle()
    pass_minutes(node, Reading())
    assert taken(node)[-1].job == JOB


def test_sample_names_no_job_on_a_node_that_its_attempt_does_not_have(node: JobNode) -> None:
    node.membership(SECOND)
    node.settle()
    node.started_by_another(SECOND[:1])
    node.submit(nodes=1)
    node.settle()
    pass_minutes(node, Reading())
    assert taken(node)[-1].job == ""


def run_job(node: JobNode) -> None:
    node.membership(FIRST)
    node.settle()
    node.submit()
    node.settle()


def of_job() -> Utilization:
    found = utilization(json.loads(files.read(JOB_METRICS)))
    assert found
    return found


def test_minutes_in_which_the_last_job_stores_results_are_not_those_of_the_next(node: JobNode) -> None:
    run_job(node)
    pass_minutes(node, Reading(90))
    node.submit(id="train-20261122-200501")
    pass_minutes(node, Reading(1), Reading(2))
    assert [sample.job for sample in taken(node)] == [JOB, "", ""]
    assert of_job().over_time == (90,)


def test_metrics_of_an_attempt_are_kept_over_a_restart_of_the_watch(node: JobNode) -> None:
    run_job(node)
    pass_minutes(node, Reading(90, 10, 1), Reading(70, 30, 2))
    node.start()
    node.settle()
    pass_minutes(node, Reading(), Reading(50, 20, 0))
    assert of_job().over_time == (90, 70, None, 50)
    assert (of_job().core_utilization, of_job().memory_utilization, of_job().execution_errors) == (70, 30, 3)


def test_metrics_of_a_long_attempt_are_bounded(node: JobNode) -> None:
    run_job(node)
    pass_minutes(node, *[Reading(core_utilization=100)] * 100, *[Reading(core_utilization=0)] * 100)
    assert (of_job().minutes, of_job().over_time) == (4, (100,) * 25 + (0,) * 25)


@pytest.fixture
def monitored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    files.write(files.PLAN, json.dumps({"neuron_cores": 4}))
    files.write("report", json.dumps(DOCUMENTED) + "\n")
    return tmp_path


def monitor(folder: Path, script: str) -> None:
    (folder / "neuron-monitor").write_text(f"#!/bin/bash\necho $$ >{folder}/pid\n{script}\n")
    (folder / "neuron-monitor").chmod(0o755)


def test_reports_of_neuron_monitor_are_read_at_low_priority(monitored: Path) -> None:
    monitor(monitored, f"cp $2 {monitored}/config; echo no JSON; while cat {monitored}/report; do sleep 0.1; done")
    readings = neuron_readings()
    assert [next(readings).execution_errors, next(readings).execution_errors] == [0, 0]
    assert os.getpriority(os.PRIO_PROCESS, int((monitored / "pid").read_text())) == device_readings.NICENESS
    assert json.loads((monitored / "config").read_text())["period"] == "60s"
    readings.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((monitored / "pid").read_text()), 0)


@pytest.mark.parametrize("script", ["exec sleep 600", "exit 1", "yes", "tr '\\0' x </dev/zero"])
def test_monitor_that_reports_nothing_is_ended(monitored: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_readings, "LATE_SECONDS", 0.2)
    monitor(monitored, f"timeout 1 {script}" if script == "yes" else script)
    began = time.monotonic()
    assert list(neuron_readings()) == []
    assert time.monotonic() - began < 300


def test_minute_with_an_error_is_reported_at_once(node: JobNode) -> None:
    """A node that fails may be terminated before its next regular report."""
    pass_minutes(node, Reading(core_utilization=1.0), Reading(execution_errors=3))
    sent = NodeUsage.from_json(node.aws.records[f"{BUCKET}/usage/{INSTANCE_ID}.json"]).samples
    assert [sample.execution_errors for sample in sent] == [None, 3]
