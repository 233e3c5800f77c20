"""Checks GPUs with nvidia-smi, DCGM's diagnostics, nccl-tests, and the counters of uncorrected memory errors.

Sources: nvidia-smi --help-query-gpu and --help-query-compute-apps; NVIDIA DCGM, nvvs/src/JsonOutput.cpp of 3.x and 4.x
(a list of tests, in categories before 4.0); nccl-tests, src/common.cu (the lines of the summary).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any, cast

from . import files
from .check import Check, check, not_checked
from .job_user import JOB_USER
from .neuron import MEMORY_TOLERANCE, missing_ids
from .programs import ProgramRun, run

SECONDS = 60
SHORT_SECONDS = 5
"""Time limit of nvidia-smi, which may hang on a broken GPU, where the end of an attempt or a record waits for it."""
DRIVER = "sys/module/nvidia/version"
FIELDS = ("index", "memory.total", "mig.mode.current", "persistence_mode", "ecc.errors.uncorrected.volatile.total")
MIB_PER_GIB = 1024
NAMES = ("gpus", "device-memory", "gpu-settings")
NCCL_TESTS = (
    "usr/local/cuda*/efa/test-cuda*/all_reduce_perf",
    "opt/nccl-tests/build/all_reduce_perf",
    "usr/local/cuda*/nccl-tests/all_reduce_perf",
)
"""Where GPU images have nccl-tests. The path may depend on the version of CUDA."""
NETWORK = {"FI_PROVIDER": "efa", "NCCL_SOCKET_IFNAME": "^docker,lo,veth"}
"""Variables of libfabric and NCCL: data uses EFA, and connections avoid interfaces that other nodes cannot reach."""
Gpus = list[dict[str, str]]


def check_driver() -> Check:
    loaded = files.read(DRIVER).strip()
    problem = "the NVIDIA driver is not loaded"
    return Check("driver", "loaded", f"driver {loaded}" if loaded else "not loaded", bool(loaded), problem)


def list_gpus(seconds: float = SECONDS) -> tuple[Gpus, str]:
    """The GPUs with FIELDS, or why nvidia-smi does not list them within a time."""
    ran = _query("gpu", FIELDS, seconds)
    rows = [[field.strip() for field in line.split(",")] for line in ran.out.splitlines() if line.strip()]
    if ran.error:
        return [], ran.error
    if any(len(row) != len(FIELDS) for row in rows):
        return [], "nvidia-smi prints other fields than requested"
    return [dict(zip(FIELDS, row)) for row in rows], ""


def users() -> list[str]:
    """Processes that compute on GPUs: name and process ID; empty if nvidia-smi fails."""
    rows = [line.split(",") for line in _query("compute-apps", ("process_name", "pid")).out.splitlines()]
    return sorted({f"{row[0].strip()} ({row[1].strip()})" for row in rows if len(row) == 2})


def _query(what: str, fields: tuple[str, ...], seconds: float = SECONDS) -> ProgramRun:
    options = (f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits")
    return run("nvidia-smi", *options, seconds=seconds)


def check_gpus(plan: dict[str, Any], gpus: Gpus, error: str) -> list[Check]:
    expected = plan["gpus"]
    if error:
        first = Check("gpus", str(expected), error, False, error)
        return [first, *(not_checked(name, "nvidia-smi lists no GPU") for name in NAMES[1:])]
    detail = missing_ids("GPU", expected, [gpu["index"] for gpu in gpus])
    count = check("gpus", str(expected), f"{len(gpus)}{detail}", f"{len(gpus)} of {expected} GPUs{detail}")
    return [count, _check_memory(plan["device_memory_gib"], gpus), _check_settings(gpus)]


def _check_memory(gib: int, gpus: Gpus) -> Check:
    """The driver reserves a part of the memory, and the catalogue rounds down."""
    wrong = [gpu for gpu in gpus if abs(_gib(gpu["memory.total"]) - gib) > MEMORY_TOLERANCE * gib]
    found = "; ".join(f"{gpu['memory.total']} MiB on GPU {gpu['index']}" for gpu in wrong) or f"{gib} GiB"
    return check("device-memory", f"{gib} GiB", found, f"device memory is {found}, not {gib} GiB")


def _gib(mib: str) -> float:
    return int(mib) / MIB_PER_GIB if re.fullmatch("[0-9]{1,9}", mib) else 0


def _check_settings(gpus: Gpus) -> Check:
    """MIG divides a GPU, so that jobs see other devices. Without persistence mode each process starts slowly."""
    divided = [gpu["index"] for gpu in gpus if gpu["mig.mode.current"] == "Enabled"]
    slow = [gpu["index"] for gpu in gpus if gpu["persistence_mode"] == "Disabled"]
    wrong = [f"MIG is enabled on GPU {', '.join(divided)}"] if divided else []
    doubts = [f"persistence mode is disabled on GPU {', '.join(slow)}"] if slow else []
    found = "; ".join(wrong + doubts) or "as expected"
    result = Check("gpu-settings", "no MIG, persistence mode", found, not wrong, "; ".join(wrong))
    return result._replace(warning="; ".join(doubts)) if doubts and not wrong else result


def error_counts(seconds: float = SECONDS) -> dict[str, int]:
    """Uncorrected memory errors since the driver was loaded, by GPU, without GPUs that do not count them.

    Args:
        seconds: Time limit of nvidia-smi, after which there are no counts.
    """
    counts = {gpu["index"]: gpu[FIELDS[-1]] for gpu in list_gpus(seconds)[0]}
    return {index: int(count) for index, count in counts.items() if count.isdigit()}


def check_errors(before: dict[str, int], now: dict[str, int]) -> Check:
    """Errors during the tests fail the node. Earlier errors are a warning, as is no counter on any GPU."""
    new = {index: count - before[index] for index, count in now.items() if count > before.get(index, count)}
    findings = [f"GPU {index}: {count} uncorrected memory errors" for index, count in new.items()]
    findings += [
        f"GPU {index}: {count} uncorrected memory errors, before the tests" for index, count in before.items() if count
    ]
    found = "; ".join(findings) or ("none" if now else "no GPU has a counter of memory errors")
    result = Check("hardware-errors", "none", found, not findings and bool(now), f"hardware errors: {found}")
    return result if new or result.ok else result.warned()


def increases(before: dict[str, int], now: dict[str, int]) -> list[str]:
    """A sentence for each counter that has increased."""
    return [
        f"GPU {index}: new uncorrected memory errors"
        for index, count in now.items()
        if count > before.get(index, count)
    ]


def check_dcgm(plan: dict[str, Any]) -> Check:
    """A failed test fails the node. No result is a warning, because DCGM may be missing or not support the GPU."""
    level, seconds = plan["gpu_verification"]["dcgm_level"], plan["gpu_verification"]["dcgm_seconds"]
    expected = f"level {level} passes"
    ran = run("dcgmi", "diag", "-r", str(level), "-j", seconds=seconds)
    results = dict(_diagnosed(ran.out))
    failed = {name: why for name, why in results.items() if why}
    if failed:
        problem = "DCGM: " + "; ".join(
            f"{name} fails{f': {why}' if why != 'fail' else ''}" for name, why in failed.items()
        )
        return Check("dcgm", expected, problem, False, problem)
    if not results:
        why = ran.error or "dcgmi prints no test"
        return Check("dcgm", expected, f"not tested: {why}", True, warning=f"DCGM did not test the GPUs: {why}")
    return Check("dcgm", expected, f"{len(results)} tests, none fails", True)


def _diagnosed(text: str) -> Iterator[tuple[str, str]]:
    """Name of each test that ran, and why it failed; empty if it passed or only warns. Skipped tests are left out."""
    start = text.find("{")
    try:
        printed: Any = json.JSONDecoder().raw_decode(text[start:])[0] if start >= 0 else {}
    except (ValueError, RecursionError):
        return
    for test in _tests(printed):
        states = [result for result in _dicts(test.get("results")) if isinstance(result.get("status"), str)]
        failed = [result for result in states if result["status"].casefold() == "fail"]
        if failed:
            yield str(test.get("name")), _first_warning(failed[0]) or "fail"
        elif any(result["status"].casefold() in ("pass", "warn") for result in states):
            yield str(test.get("name")), ""


def _first_warning(result: dict[str, Any]) -> str:
    """The first warning: a text, or since DCGM 3.3 an object with the text in `warning`."""
    warnings: Any = result.get("warnings")
    first: Any = cast("list[Any]", warnings)[0] if isinstance(warnings, list) and warnings else ""
    text: Any = cast("dict[str, Any]", first).get("warning", "") if isinstance(first, dict) else first
    return " ".join(str(text).split())[:200]


def _tests(printed: Any) -> Iterator[dict[str, Any]]:
    """The lists `tests`, at any depth."""
    if isinstance(printed, dict):
        for name, value in cast("dict[str, Any]", printed).items():
            if name == "tests":
                yield from _dicts(value)
            else:
                yield from _tests(value)
    elif isinstance(printed, list):
        for value in cast("list[Any]", printed):
            yield from _tests(value)


def _dicts(value: Any) -> list[dict[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def check_collectives(plan: dict[str, Any]) -> Check:
    """An all-reduce over all GPUs with nccl-tests, which checks the result."""
    gpus, limits = plan["gpus"], plan["gpu_verification"]
    expected = f"a correct all-reduce over {gpus} GPUs"
    if gpus < 2:
        return Check("collectives", expected, "one GPU has no other GPU to reduce with", True)
    programs = sorted(program for place in NCCL_TESTS for program in files.path("").glob(place))
    if not programs:
        found = "not tested: nccl-tests is not installed"
        return Check("collectives", expected, found, True, warning=f"all-reduce over {gpus} GPUs: {found}")
    size = str(limits["nccl_bytes"])
    command = (str(programs[-1]), "-b", size, "-e", size, "-g", str(gpus), "-n", "5", "-w", "1", "-c", "1")
    ran = run(
        *command, seconds=limits["nccl_seconds"], user=JOB_USER, folder="/tmp" if not os.environ.get("ROOT") else "/"
    )
    wrong = re.search(r"Out of bounds values\s*:\s*([0-9]+)", ran.out)
    speed = re.search(r"Avg bus bandwidth\s*:\s*([0-9.]+)", ran.out)
    if wrong and int(wrong[1]):
        problem = f"all-reduce over {gpus} GPUs: {wrong[1]} wrong numbers"
        return Check("collectives", expected, problem, False, problem, wrong_numbers=True)
    if ran.error or not wrong or not speed:
        problem = f"all-reduce over {gpus} GPUs: {ran.error or 'nccl-tests reports no result'}"
        return Check("collectives", expected, problem, False, problem)
    bandwidth = float(speed[1])
    found = f"correct, {bandwidth:.1f} GB/s at {limits['nccl_bytes'] // 2**20} MiB"
    return Check("collectives", expected, found, True, bandwidth=bandwidth)
