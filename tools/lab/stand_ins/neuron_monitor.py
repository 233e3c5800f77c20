#!/usr/bin/python3
"""neuron-monitor: prints a report in each period. NeuronCores are as busy as the processes of jobs keep the CPUs."""

import json
import os
import pwd
import sys
import time
from pathlib import Path
from typing import Any

from node_hardware import description, devices_present, is_driver_loaded

JOB_USER = "trn-job"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
OUTCOMES = ("completed_with_err", "completed_with_num_err", "timed_out", "incorrect_input", "failed_to_queue")


def cpu_seconds() -> dict[int, float]:
    """The CPU time of each process of a job."""
    user, seconds = pwd.getpwnam(JOB_USER).pw_uid, dict[int, float]()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.stat().st_uid == user:
                times = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
                seconds[int(folder.name)] = sum(map(int, times)) / TICKS_PER_SECOND
        except (FileNotFoundError, ProcessLookupError):
            continue
    return seconds


def runtime(pid: int, percent: float, period: float, hardware: dict[str, Any]) -> dict[str, Any]:
    cores = (
        len(devices_present(hardware)) * hardware["neuron_cores_per_device"] // hardware["logical_neuroncore_config"]
    )
    in_use = {str(core): {"neuroncore_utilization": percent, "flops": 0} for core in range(cores)}
    used = {"host": 0, "neuron_device": hardware["neuron_devices"] * hardware["device_memory_bytes"] // 4}
    summary = {"completed": 1, **dict.fromkeys(OUTCOMES, 0), "completed_with_err": hardware["failed_executions"]}
    report = {
        "neuroncore_counters": {"period": period, "neuroncores_in_use": in_use, "error": ""},
        "memory_used": {"period": period, "neuron_runtime_used_bytes": used, "loaded_models": [], "error": ""},
        "execution_stats": {"period": period, "execution_summary": summary, "error": ""},
    }
    return {"pid": pid, "address": "", "neuron_runtime_tag": str(pid), "error": "", "report": report}


def report(before: dict[int, float], now: dict[int, float], period: float) -> dict[str, Any]:
    hardware = description()
    spent = sum(seconds - before.get(pid, 0) for pid, seconds in now.items())
    percent = min(100, 100 * spent / period / (os.cpu_count() or 1))
    kinds = ("mem_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_uncorrected", "sram_ecc_corrected")
    counters = dict.fromkeys(kinds, 0) | {"mem_ecc_corrected": hardware["corrected_errors"]}
    devices = [{"neuron_device_index": number, **counters} for number in devices_present(hardware)]
    return {
        "neuron_runtime_data": [runtime(min(now), percent, period, hardware)] if now else [],
        "system_data": {"neuron_hw_counters": {"period": period, "neuron_devices": devices, "error": ""}},
        "neuron_hardware_info": {
            "neuron_device_count": hardware["neuron_devices"],
            "neuron_device_memory_size": hardware["device_memory_bytes"],
            "neuroncore_per_device_count": hardware["neuron_cores_per_device"],
            "logical_neuroncore_config": hardware["logical_neuroncore_config"],
            "error": "" if is_driver_loaded() else "the driver is not loaded",
        },
    }


if __name__ == "__main__":
    option, path = sys.argv[1:]
    if option != "-c":
        sys.exit(f"neuron-monitor: unknown option {option}")
    seconds = float(json.loads(Path(path).read_text())["period"].removesuffix("s"))
    last, began = cpu_seconds(), time.monotonic()
    while True:
        time.sleep(seconds)
        current, ended = cpu_seconds(), time.monotonic()
        print(json.dumps(report(last, current, ended - began)), flush=True)
        last, began = current, ended
