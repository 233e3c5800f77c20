"""Compare the Neuron and EFA devices of this node with what its plan expects.

Runs on the node, out of the user data: Python 3.9 or later, standard library only.
Arguments: the root folder, then what is expected as name=number. Prints the checks as one line of JSON and, unless all
is well, a line that says what is wrong. Exit code 0: all is well. Standard error is the log.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple, cast

NEURON_LS_SECONDS = 60
GIB = 2**30


class Expected(NamedTuple):
    neuron_devices: int
    neuron_cores: int
    device_memory_gib: int
    logical_neuroncore_config: int
    efa_devices: int


class Check(NamedTuple):
    name: str
    expected: str
    found: str
    complaint: str

    @property
    def ok(self) -> bool:
        return self.found == self.expected


class NeuronLsError(Exception):
    """neuron-ls gave no list of devices."""


def neuron_ls() -> str:
    command = ["neuron-ls", "-j"]
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=NEURON_LS_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NeuronLsError(f"neuron-ls did not run: {error}") from None
    if run.returncode:
        message = " ".join((run.stderr or run.stdout).decode("ascii", "backslashreplace").split())
        raise NeuronLsError(f"neuron-ls failed with exit code {run.returncode}: {message or 'no message'}")
    return run.stdout.decode(errors="replace")


def read_devices(output: str) -> list[dict[str, Any]]:
    """The devices that `neuron-ls -j` lists, with whatever fields its version has."""
    try:
        devices: Any = json.loads(output)
    except (ValueError, RecursionError):
        raise NeuronLsError("neuron-ls printed no JSON") from None
    if not isinstance(devices, list) or not all(isinstance(device, dict) for device in cast("list[Any]", devices)):
        raise NeuronLsError("neuron-ls printed no list of devices")
    return cast("list[dict[str, Any]]", devices)


def numbers(devices: list[dict[str, Any]], field: str) -> list[int | None]:
    """The field of each device; None where it is absent or no whole number. Some numbers come as text."""
    texts = [str(device.get(field)) for device in devices]
    return [int(text) if re.fullmatch("[0-9]{1,18}", text) else None for text in texts]


def check_neuron(expected: Expected, output: str) -> list[Check]:
    devices = read_devices(output)
    ids = numbers(devices, "neuron_device")
    cores = sum(count or 0 for count in numbers(devices, "nc_count"))
    memory = [in_gib(size) for size in numbers(devices, "memory_size")]
    lnc = numbers(devices, "logical_neuroncore_config")
    checks = [
        check_devices(expected.neuron_devices, ids),
        check_count("NeuronCores", expected.neuron_cores, cores),
        check_each("device memory", in_gib(expected.device_memory_gib * GIB), memory, ids),
    ]
    # Not printed on every type and by every version; the number of cores says as much.
    if any(lnc):
        configs = [str(config or "unknown") for config in lnc]
        checks.append(check_each("LNC", str(expected.logical_neuroncore_config), configs, ids))
    return checks


def in_gib(size: int | None) -> str:
    if size is None:
        return "unknown"
    return f"{size} bytes" if size % GIB else f"{size // GIB} GiB"


def check_devices(expected: int, ids: list[int | None]) -> Check:
    missing = ", ".join(str(number) for number in range(expected) if number not in ids)
    detail = f" (missing {missing})" if missing else ""
    complaint = f"neuron-ls shows {len(ids)} of {expected} Neuron devices{detail}"
    return Check("Neuron devices", str(expected), f"{len(ids)}{detail}", complaint)


def check_count(name: str, expected: int, found: int) -> Check:
    return Check(name, str(expected), str(found), f"{found} of {expected} {name}")


def check_each(name: str, expected: str, values: list[str], ids: list[int | None]) -> Check:
    places: dict[str, list[str]] = {}
    for value, number in zip(values, ids):  # noqa: B905 - strict= came with Python 3.10
        places.setdefault(value, []).append(str(number))
    wrong = [f"{value} on device {', '.join(places[value])}" for value in places if value != expected]
    found = "; ".join(wrong) or (expected if values else "no device")
    return Check(name, expected, found, f"{name} is {found}, not {expected}")


def check_efa(expected: int, root: Path) -> Check:
    folder = root / "sys/class/infiniband"
    return check_count("EFA devices", expected, len(list(folder.iterdir())) if folder.is_dir() else 0)


def check_node(expected: Expected, root: Path) -> list[Check]:
    try:
        checks = check_neuron(expected, neuron_ls())
    except NeuronLsError as error:
        checks = [Check("neuron-ls", "a list of Neuron devices", str(error), str(error))]
    return [*checks, check_efa(expected.efa_devices, root)]


def main(root: str, *expectations: str) -> int:
    named = dict(expectation.split("=") for expectation in expectations)
    expected = Expected(**{name: int(number) for name, number in named.items()})
    checks = check_node(expected, Path(root))
    for c in checks:
        print(f"{'ok' if c.ok else 'WRONG':5} {c.name}: expected {c.expected}, found {c.found}", file=sys.stderr)
    print(json.dumps([{"name": c.name, "expected": c.expected, "found": c.found, "ok": c.ok} for c in checks]))
    if all(c.ok for c in checks):
        return 0
    print("; ".join(c.complaint for c in checks if not c.ok))
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
