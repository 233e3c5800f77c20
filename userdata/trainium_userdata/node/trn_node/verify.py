"""`trn-node verify`: the checks of a node by itself, the quick ones first, and the record of their outcome."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trainium_wire.logs import file_logger

from . import (
    clock,
    collectives,
    disks,
    driver,
    efa,
    files,
    gpu,
    hardware,
    limits,
    neuron,
    record,
    self_test,
    ultraserver,
)
from .check import CONTAINER, HOST, Check, not_checked
from .imds import Imds

_LOGGER = file_logger("trn_node")

ATTEMPTS, PAUSE = 8, 5.0
"""How often the quick checks run at most while one of RETRIED has a problem or a warning, and the pause in seconds."""
VERIFIED, FAILED, BUSY, RELOAD, ABORTED = 0, 1, 2, 3, 4
"""Exit codes. After BUSY, RELOAD and ABORTED there was no report."""
RETRIED = {
    "driver",
    "neuron-devices",
    "neuron-cores",
    "gpus",
    "efa-devices",
    "efa-provider",
    "efa-domains",
    "time-sync",
    "ultraserver",
}
NEEDED = ("driver", "neuron-devices", "neuron-cores", "gpus")
"""Without these, the slow checks would be misleading."""
IN_SCOPE = {HOST: {"efa-devices", "time-sync", "ultraserver"}, CONTAINER: {"efa-devices", "framework"}}
"""The quick checks of plans with a scope, beside those of the devices. containerd sets the limits of pods."""


class BusyError(Exception):
    """Processes use devices, and would conflict with a self-test."""


def verify(*, last: bool, hold: bool) -> int:
    """Verify and report the node. Returns the exit code.

    Args:
        last: Whether the driver has already been reloaded.
        hold: Whether to keep the record of a verified node without sending it.

    Raises:
        BusyError: Other processes use the devices.
    """
    imds = Imds()
    try:
        plan = files.plan()
    except (OSError, ValueError) as error:
        checks = [Check("driver", "to be checked", "no plan", False, f"/{files.PLAN} cannot be read: {error}")]
    else:
        checks = run_checks(plan, last=last)
        if not last and any(check.may_heal and not check.settled for check in checks):
            _LOGGER.info("reloading the driver may solve this: rmmod neuron; modprobe neuron; trn-node verify --last")
            return RELOAD
    verified = all(check.ok for check in checks)
    made = record.make("verified" if verified else "failed", checks, imds)
    if verified and hold:
        record.write(made)
        return VERIFIED
    return VERIFIED if record.report(made, imds) == "s3" and verified else FAILED


def run_checks(plan: dict[str, Any], *, last: bool) -> list[Check]:
    """The checks that count. Slow checks are skipped if reloading the driver may solve a problem.

    Args:
        plan: The plan's expectations of the node.
        last: Whether the driver has already been reloaded.

    Raises:
        BusyError: Other processes use the devices.
    """
    left = int(os.environ.get("TRN_VERIFY_ATTEMPTS") or ATTEMPTS)
    while True:
        quick, cores = quick_checks(plan)
        left -= 1
        if not left or not any(check.name in RETRIED and not check.settled for check in quick):
            break
        pause()
    show(quick)
    if not last and any(check.may_heal and not check.settled for check in quick):
        return quick
    if plan.get("scope") == HOST:
        return quick
    missing = [check.name for check in quick if check.name in NEEDED and not check.ok]
    if missing or not cores:
        why = f"{', '.join(missing)} must pass first" if missing else "no NeuronCore or GPU was found"
        slow = [not_checked(name, why) for name in ("self-test", "memory-test", "collectives")]
    elif plan.get("gpus"):
        _LOGGER.info("computing on %d GPUs", cores)
        before = gpu.error_counts()
        slow = [
            *guarded("dcgm", lambda: [gpu.check_dcgm(plan)]),
            *guarded("self-test", lambda: self_test.check_cores(plan, cores)),
            *guarded("collectives", lambda: [gpu.check_collectives(plan)]),
            *guarded("hardware-errors", lambda: [gpu.check_errors(before, gpu.error_counts())]),
        ]
    else:
        _LOGGER.info("computing on %d NeuronCores, which takes minutes when nothing is compiled yet", cores)
        before = error_counts()
        slow = [
            *guarded("self-test", lambda: self_test.check_cores(plan, cores)),
            *guarded("collectives", lambda: [collectives.check_collectives(plan, cores)]),
            *guarded("hardware-errors", lambda: [hardware.check_errors(before, error_counts(), hardware.unhealthy())]),
        ]
    # Before `counted`, which makes suppressed and observed problems ok.
    computed_right = all(check.ok for check in slow if check.name in ("self-test", "collectives"))
    slow = [check.counted(plan) for check in slow]
    show(slow)
    wrong = [check.problem or check.warning for check in slow if not check.settled]
    if wrong and users(plan):
        # By then, killed processes of the tests have ended.
        pause()
        if held := users(plan):
            raise BusyError(f"{in_use(plan, held)}, which may be the cause: {'; '.join(wrong)}")
    checks = driver.check_compatibility(plan, [*quick, *slow], computed_right=computed_right)
    return [check.counted(plan) for check in checks]


def error_counts() -> dict[str, int]:
    return {**hardware.counters(), **hardware.core_counters()}


def users(plan: dict[str, Any]) -> list[str]:
    return gpu.users() if plan.get("gpus") else neuron.users(neuron.list_devices(plan)[0])


def in_use(plan: dict[str, Any], held: list[str]) -> str:
    return f"{'GPUs' if plan.get('gpus') else 'NeuronCores'} are in use by {', '.join(held[:3])}"


def pause() -> None:
    time.sleep(float(os.environ.get("TRN_VERIFY_PAUSE") or PAUSE))


def quick_checks(plan: dict[str, Any]) -> tuple[list[Check], int]:
    """The quick checks that count, and the number of NeuronCores or GPUs. Raises BusyError."""
    with ThreadPoolExecutor() as side_by_side:
        others = side_by_side.map(guarded, *other_quick_checks(plan))
        checks, cores = gpu_checks(plan) if plan.get("gpus") else device_checks(plan)
        checks += [check for results in others for check in results]
    return [check.counted(plan) for check in checks], cores


def device_checks(plan: dict[str, Any]) -> tuple[list[Check], int]:
    checks, cores = guarded("driver", lambda: [driver.check_driver(plan)]), 0
    if checks[0].counted(plan).ok:
        devices, error = neuron.list_devices(plan)
        if held := neuron.users(devices):
            raise BusyError(in_use(plan, held))
        checks += guarded("neuron-devices", lambda: neuron.check_devices(plan, devices, error))
        cores = neuron.core_count(devices)
    else:
        checks += [not_checked(name, "driver must pass first") for name in neuron.NAMES if neuron.applies(name, plan)]
    return checks, cores


def gpu_checks(plan: dict[str, Any]) -> tuple[list[Check], int]:
    checks = guarded("driver", lambda: [gpu.check_driver()])
    if not checks[0].counted(plan).ok:
        return checks + [not_checked(name, "driver must pass first") for name in gpu.NAMES], 0
    if held := gpu.users():
        raise BusyError(in_use(plan, held))
    gpus, error = gpu.list_gpus()
    return checks + guarded("gpus", lambda: gpu.check_gpus(plan, gpus, error)), len(gpus)


def other_quick_checks(plan: dict[str, Any]) -> tuple[Sequence[str], Sequence[Callable[[], list[Check]]]]:
    """The names of the first check of each function, and the functions."""
    made: dict[str, Callable[[], list[Check]]] = {
        "efa-devices": lambda: efa.check_efa(plan),
        "framework": lambda: [self_test.check_framework(plan)],
        "memlock": lambda: limits.check_limits(plan),
        "reserved-ports": lambda: [limits.check_reserved_ports(plan)],
        "time-sync": lambda: [clock.check_time()],
        "ultraserver": lambda: ultraserver.check_mode(plan),
        "nvme": lambda: disks.check_nvme(plan),
    }
    names = [name for name in made if name in IN_SCOPE.get(plan.get("scope", ""), made)]
    return names, [made[name] for name in names]


def guarded(name: str, checks: Callable[[], list[Check]]) -> list[Check]:
    """The checks, or a failed one if an error is raised."""
    try:
        return checks()
    except Exception as error:
        message = f"ends with {type(error).__name__}: {error}"
        return [Check(name, "to be checked", message, False, f"the check {name} {message}")]


def show(checks: Sequence[Check]) -> None:
    for check in checks:
        mark = "WRONG" if not check.ok else "WARN" if check.warning else "ok"
        warning = f": {check.warning}" if check.warning else ""
        _LOGGER.info("%-5s %s: expected %s, found %s%s", mark, check.name, check.expected, check.found, warning)
