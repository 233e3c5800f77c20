"""Compares the Neuron devices of neuron-ls with the plan."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from .check import Check, check, not_checked
from .programs import run

SECONDS = 60
GIB = 2**30
NAMES = ("neuron-devices", "neuron-cores", "device-memory", "lnc")
MEMORY_TOLERANCE = 0.05
"""The firmware reserves a part of a device's memory, which not every version of neuron-ls counts."""
JSON_OPTIONS = (("-j",), ("--output-format", "json"))
"""Neuron 2.34 replaces -j with the other option (AWS Neuron SDK documentation, announcement of 2026-10-16)."""
REFUSED_OPTION = re.compile("flag|option|argument|usage|no longer|not supported", re.I)
OBSERVERS = {
    *("neuron-monitor", "neuron-top", "neuron-ls"),
    *("nvidia-smi", "nvidia-persiste", "nv-fabricmanage", "nv-hostengine", "dcgmi", "dcgm-exporter"),
}
"""Programs that open devices and compute nothing. Linux cuts names after 15 characters."""
DEVICE_FIELDS = {"neuron_device", "nc_count"}
Devices = list[dict[str, Any]]


def list_devices(plan: dict[str, Any]) -> tuple[Devices, str]:
    """The devices, or why neuron-ls does not list them. neuron-ls gets the LNC, because it counts logical cores."""
    lnc = plan["logical_neuroncore_config"]
    changes = {"NEURON_LOGICAL_NC_CONFIG": str(lnc)} if lnc else {}
    errors: list[str] = []
    for options in JSON_OPTIONS:
        ran = run("neuron-ls", *options, seconds=SECONDS, changes=changes)
        devices, error = ([], ran.error) if ran.error else read_devices(ran.out)
        if not error:
            return devices, ""
        errors.append(error)
    return [], next((error for error in errors if not REFUSED_OPTION.search(error)), errors[0])


def read_devices(output: str) -> tuple[Devices, str]:
    """The devices with the fields of this version of neuron-ls, or why there is no list.

    Since Neuron 2.34 the list is a field of an object, whose other fields apply to every device.
    """
    try:
        printed: Any = json.loads(output)
    except (ValueError, RecursionError):
        return [], "neuron-ls prints no JSON"
    common: dict[str, Any] = {}
    if isinstance(printed, dict):
        fields = cast("dict[str, Any]", printed)
        lists = [value for value in fields.values() if is_devices(value) and value and {*value[0]} >= DEVICE_FIELDS]
        common = {name: value for name, value in fields.items() if not isinstance(value, (dict, list))}
        printed = lists[0] if len(lists) == 1 else None
    if not is_devices(printed):
        return [], "neuron-ls prints no list of devices"
    return [{**common, **device} for device in cast("Devices", printed)], ""


def is_devices(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(device, dict) for device in cast("list[Any]", value))


def check_devices(plan: dict[str, Any], devices: Devices, error: str) -> list[Check]:
    count = plan["neuron_devices"]
    if error:
        first = Check("neuron-devices", str(count), error, False, error, True)
        return [first, *(not_checked(name, "neuron-ls lists no device") for name in NAMES[1:] if applies(name, plan))]
    ids = numbers(devices, "neuron_device")
    memory = [
        in_gib(expected_if_close(size, plan["device_memory_gib"] * GIB)) for size in numbers(devices, "memory_size")
    ]
    cores = core_count(devices)
    checks = [
        check_ids(count, ids),
        check("neuron-cores", str(plan["neuron_cores"]), str(cores), f"{cores} of {plan['neuron_cores']} NeuronCores"),
        check_each("device-memory", "device memory", in_gib(plan["device_memory_gib"] * GIB), memory, ids),
    ]
    if applies("lnc", plan):
        checks.append(check_lnc(plan, devices, ids))
    return checks


def applies(name: str, plan: dict[str, Any]) -> bool:
    return name != "lnc" or plan["logical_neuroncore_config"] is not None


def numbers(devices: Devices, field: str) -> list[int | None]:
    """The field of each device; None if it is absent or not an integer. Some numbers are printed as text."""
    texts = [str(device.get(field)) for device in devices]
    return [int(text) if re.fullmatch("[0-9]{1,18}", text) else None for text in texts]


def core_count(devices: Devices) -> int:
    return sum(count or 0 for count in numbers(devices, "nc_count"))


def users(devices: Devices) -> list[str]:
    """Processes that use NeuronCores, except OBSERVERS: command and process ID."""
    held = [device.get("neuron_processes") for device in devices]
    processes = [process for users in held if isinstance(users, list) for process in cast("list[Any]", users)]
    valid = [cast("dict[str, Any]", process) for process in processes if isinstance(process, dict)]
    programs = [(str(process.get("command")), process.get("pid")) for process in valid]
    return sorted(
        {f"{line} ({pid})" for line, pid in programs if line.split(" ")[0].rpartition("/")[2] not in OBSERVERS}
    )


def expected_if_close(size: int | None, expected: int) -> int | None:
    """The expected size for a size close to it; otherwise the size."""
    return expected if size is not None and abs(size - expected) <= MEMORY_TOLERANCE * expected else size


def in_gib(size: int | None) -> str:
    if size is None:
        return "unknown"
    return f"{size} bytes" if size % GIB else f"{size // GIB} GiB"


def missing_ids(kind: str, expected: int, ids: Sequence[int | str | None]) -> str:
    """The IDs that are not found, in brackets."""
    missing = [str(number) for number in range(expected) if str(number) not in map(str, ids)]
    return f" (missing: {kind}{'s' if len(missing) > 1 else ''} {', '.join(missing)})" if missing else ""


def check_ids(expected: int, ids: list[int | None]) -> Check:
    detail = missing_ids("device", expected, ids)
    found = f"{len(ids)}{detail}"
    problem = f"{len(ids)} of {expected} Neuron devices{detail}"
    return check("neuron-devices", str(expected), found, problem)._replace(may_heal=True)


def check_each(name: str, what: str, expected: str, values: list[str], ids: list[int | None]) -> Check:
    with_value: dict[str, list[str]] = {}
    for value, number in zip(values, ids):
        with_value.setdefault(value, []).append(str(number))
    wrong = [f"{value} on device {', '.join(with_value[value])}" for value in with_value if value != expected]
    found = "; ".join(wrong) or (expected if values else "no device")
    return check(name, expected, found, f"{what} is {found}, not {expected}")


def check_lnc(plan: dict[str, Any], devices: Devices, ids: list[int | None]) -> Check:
    expected = str(plan["logical_neuroncore_config"])
    configs = numbers(devices, "logical_neuroncore_config")
    # Not every version prints the field. For jobs, only the number of cores counts.
    right = core_count(devices) == plan["neuron_cores"]
    if any(configs):
        each = check_each("lnc", "LNC", expected, [str(config or "unknown") for config in configs], ids)
        return each.warned() if right and not each.ok else each
    found = f"{expected} by the number of cores" if right else "unknown"
    return Check("lnc", expected, found, right, f"LNC is unknown, not {expected}")
