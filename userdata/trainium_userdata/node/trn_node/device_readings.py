"""What neuron-monitor and nvidia-smi report of the devices.

Sources: AWS Neuron SDK documentation, tools/neuron-sys-tools/neuron-monitor-user-guide.rst at 81ce03ae (2026-08-21);
nvidia-smi --help-query-gpu.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from . import files
from .programs import environment, run

SECONDS = 60
"""The period of a reading. neuron-monitor measures for the whole period; nvidia-smi for its last second at most."""

LATE_SECONDS = 150
"""After this time without a report, neuron-monitor is ended."""

LARGEST_REPORT = 4 * 2**20
"""Bytes. Reports name every loaded model."""

NICENESS = 19
CONFIG = "run/trn/neuron-monitor.json"
RUNTIME_GROUPS = ("neuroncore_counters", "memory_used", "execution_stats")
GPU_FIELDS = (
    *("index", "utilization.gpu", "memory.used", "memory.total"),
    *("ecc.errors.corrected.volatile.total", "ecc.errors.uncorrected.volatile.total"),
)


class Reading(NamedTuple):
    """What a tool reported of the devices; None means unknown.

    Attributes:
        corrected, uncorrected: Memory errors by device, counted since some earlier time.
    """

    core_utilization: float | None = None
    memory_utilization: float | None = None
    execution_errors: int | None = None
    corrected: dict[str, int] | None = None
    uncorrected: dict[str, int] | None = None


def neuron_readings() -> Iterator[Reading]:
    """The reports of neuron-monitor, until it ends or is late. Raises OSError if it does not run."""
    groups = [{"type": name} for name in RUNTIME_GROUPS]
    config = {
        "period": f"{SECONDS}s",
        "neuron_runtimes": [{"tag_filter": ".*", "metrics": groups}],
        "system_metrics": [{"type": "neuron_hw_counters"}],
    }
    files.write(CONFIG, json.dumps(config))
    plan = files.plan()
    process = subprocess.Popen(
        ("neuron-monitor", "-c", str(files.path(CONFIG))),
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        assert process.stdout
        for line in _lines(process.stdout.fileno()):
            with contextlib.suppress(ValueError, RecursionError):
                yield neuron_reading(json.loads(line), plan["neuron_cores"])
    finally:
        process.kill()
        process.wait()


def _lines(stream: int) -> Iterator[bytes]:
    rest = b""
    while len(rest) <= LARGEST_REPORT and select.select([stream], [], [], LATE_SECONDS)[0]:
        chunk = os.read(stream, 2**16)
        if not chunk:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines


def neuron_reading(report: Any, cores: int) -> Reading:
    """A report of neuron-monitor. A group with an error is unknown.

    If a group of one process is unknown, so is its value for the node: the others could be the idle ones. The errors
    are those of the other processes, so that none of these is missed.

    Args:
        report: The report, whose runtimes are the processes that use NeuronCores.
        cores: Number of logical NeuronCores of the node.
    """
    info = _object(report, "neuron_hardware_info")
    runtimes = _object(report).get("neuron_runtime_data")
    if not isinstance(runtimes, list) or info.get("error"):
        return Reading()
    processes = [_object(runtime) for runtime in cast("list[Any]", runtimes)]
    busy = [_utilization(_group(process, "neuroncore_counters")) for process in processes]
    used = [_used_bytes(_group(process, "memory_used")) for process in processes]
    errors = [_errors(_group(process, "execution_stats")) for process in processes]
    memory = _product(info.get("neuron_device_count"), info.get("neuron_device_memory_size"))
    return Reading(
        core_utilization=_percent(_total(busy), 100 * cores),
        memory_utilization=_percent(_total(used), memory),
        execution_errors=_known_sum(errors),
        corrected=_corrected(_object(report, "system_data", "neuron_hw_counters")),
    )


def _object(value: Any, *path: str) -> dict[str, Any]:
    """The object at a path; empty if there is none."""
    for name in path:
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _group(process: dict[str, Any], name: str) -> dict[str, Any]:
    """A metric group of a process; empty if it has an error."""
    group = _object(process, "report", name)
    return {} if process.get("error") or group.get("error") else group


def _utilization(group: dict[str, Any]) -> float | None:
    in_use = group.get("neuroncores_in_use")
    if not isinstance(in_use, dict):
        return None
    return _total(
        [_number(_object(core).get("neuroncore_utilization")) for core in cast("dict[str, Any]", in_use).values()]
    )


def _used_bytes(group: dict[str, Any]) -> float | None:
    """The guide documents `neuron_device`. A report that was published of an inf2.xlarge has `device`."""
    used = _object(group, "neuron_runtime_used_bytes")
    return _number(used.get("neuron_device", used.get("device")))


def _errors(group: dict[str, Any]) -> float | None:
    """The executions that did not end as `completed`. Those with `completed_with_num_err` computed NaN."""
    outcomes = _object(group, "execution_summary")
    return _total([_number(outcomes[name]) for name in outcomes if name != "completed"]) if outcomes else None


def _corrected(group: dict[str, Any]) -> dict[str, int] | None:
    """The corrected errors by device and kind. The guide does not say since when they are counted."""
    devices = group.get("neuron_devices")
    if not isinstance(devices, list) or group.get("error"):
        return None
    counts: dict[str, int] = {}
    for device in map(_object, cast("list[Any]", devices)):
        for kind in ("mem_ecc_corrected", "sram_ecc_corrected"):
            count = _number(device.get(kind))
            if count is None:
                return None
            counts[f"{device.get('neuron_device_index')} {kind}"] = int(count)
    return counts


def gpu_readings() -> Iterator[Reading]:
    """What nvidia-smi reports, every minute. Raises OSError if it fails."""
    while True:
        ran = run(
            "nvidia-smi",
            f"--query-gpu={','.join(GPU_FIELDS)}",
            "--format=csv,noheader,nounits",
            seconds=SECONDS / 2,
        )
        if ran.error:
            raise OSError(ran.error)
        yield gpu_reading(ran.out)
        time.sleep(SECONDS)


def gpu_reading(printed: str) -> Reading:
    """The rows of nvidia-smi with GPU_FIELDS. A field that is no number, such as [N/A], is unknown."""
    rows = [[field.strip() for field in line.split(",")] for line in printed.splitlines() if line.strip()]
    if not rows or any(len(row) != len(GPU_FIELDS) for row in rows):
        return Reading()
    columns = {name: [row[index] for row in rows] for index, name in enumerate(GPU_FIELDS)}
    busy, used, memory = (_total([_parsed(text) for text in columns[name]]) for name in GPU_FIELDS[1:4])
    corrected, uncorrected = (
        {index: int(text) for index, text in zip(columns["index"], columns[name]) if text.isdigit()}
        for name in GPU_FIELDS[4:]
    )
    return Reading(
        core_utilization=_percent(busy, 100 * len(rows)),
        memory_utilization=_percent(used, memory),
        corrected=corrected,
        uncorrected=uncorrected,
    )


def _parsed(text: str) -> float | None:
    return float(text) if text.isdigit() else None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and 0 <= value < float("inf") else None


def _total(values: list[float | None]) -> float | None:
    """The sum; None if a value is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _known_sum(values: list[float | None]) -> int | None:
    """The sum of the known values; None if all are unknown."""
    known = [value for value in values if value is not None]
    return int(sum(known)) if known or not values else None


def _product(first: Any, second: Any) -> float | None:
    one, two = _number(first), _number(second)
    return None if one is None or two is None else one * two


def _percent(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else min(round(100 * part / whole, 2), 100)
