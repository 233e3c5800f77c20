"""Errors of the devices, from the kernel log and the Neuron driver's counters of uncorrected errors.

Sources: AWS Neuron SDK documentation at 2.32.0, neuron-runtime/nrt-troubleshoot.rst, its node problem detector
(deploy/infrastructure/problem-detector-irsa.rst), tools/neuron-sys-tools/neuron-sysfs-user-guide.rst and
release-notes/components/runtime.rst (unhealthy_components); the counters of cores: aws-neuron-driver,
neuron_sysfs_metrics.c; of GPUs: NVIDIA Xid errors documentation, catalogue.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from . import files
from .check import Check

KMSG = "dev/kmsg"
DEVICES = "sys/devices/virtual/neuron_device"
BUFFER = 16384
"""Bytes. /dev/kmsg returns one record per read, and an error if the buffer is too small."""

FAILED = "failed"
DRAINING = "draining"
ERRORS_NAMED = 5
"""The maximum number of errors in a sentence."""
# The cause may be a hardware error of another node.
ELSEWHERE = "HANG_ON_COLLECTIVES"
LOST = ("SRAM_UNCORRECTABLE_ERROR", "NC_UNCORRECTABLE_ERROR", "HBM_UNCORRECTABLE_ERROR", "DMA_ERROR")
COUNTERS = {
    "mem_ecc_uncorrected": (FAILED, "uncorrectable memory errors"),
    "sram_ecc_uncorrected": (FAILED, "uncorrectable SRAM errors"),
    "mem_ecc_repairable_uncorrected": (DRAINING, "repairable memory errors: reload the driver or reboot"),
}
CORE_COUNTERS = {
    "hw_hbm_ue_error": "uncorrectable HBM errors",
    "hw_nc_ue_error": "uncorrectable errors of the core",
    "hw_dma_abort_error": "aborted DMA transfers",
}
"""Failed executions since the driver was loaded, by core. AWS's remedy for each is to replace the instance."""
HEALTH = "unhealthy_components"
COMPONENTS = (
    "hbm",
    "sram",
    "firmware_service_api",
    "firmware_service_processor",
    "link_intraserver",
    "link_host",
    "link_efa",
    "link_interserver",
    "link_switch",
    "axi_fabric",
)
"""Components that the firmware may report as unhealthy. The content of the file on a healthy device is not
documented."""

XIDS = {"48": FAILED, "64": FAILED, "79": FAILED, "95": FAILED, "63": DRAINING, "94": DRAINING}
"""NVIDIA's errors after which a GPU no longer computes or has to be reset: uncorrected memory errors that were not
contained (48, 95), memory that cannot be remapped (64), and a GPU that is lost (79) fail the node; contained errors
(94) and memory that the next reset remaps (63) drain it. Others may come from a program."""

_XID = re.compile(r"(?:\d+,(\d+),[^;]*;)?.*?NVRM: Xid \(([^)]*)\): (\d{1,3})\b")
_RECORD = re.compile(r"(?:\d+,(\d+),[^;]*;)?.*?NEURON_HW_ERR=([A-Z0-9_]{1,64})(.*)")


class KernelLog:
    """The errors in the kernel log.

    Attributes:
        seen: Sequence number of the last record with an error in this boot; -1 if there is none.
    """

    def __init__(self, seen: int) -> None:
        self.seen = seen
        self._file = -1

    def errors(self) -> dict[str, str]:
        """The resulting state of the node for each error after `seen`, by sentence; empty if the state does not change.

        Raises:
            OSError: The kernel log cannot be read.
        """
        if self._file < 0:
            self._file = os.open(files.path(KMSG), os.O_RDONLY | os.O_NONBLOCK)
        found: dict[str, str] = {}
        while True:
            try:
                text = os.read(self._file, BUFFER).decode(errors="replace")
            except BlockingIOError:
                return found
            except BrokenPipeError:
                # The oldest records were overwritten; the next read continues after them.
                continue
            if not text:
                return found
            for line in text.splitlines():
                hit = _RECORD.match(line)
                gpu_hit = None if hit else _XID.match(line)
                number = int(((hit or gpu_hit or [""] * 2)[1]) or self.seen + 1)
                if hit and number > self.seen:
                    self.seen = number
                    found.update([classify(hit[2], hit[3])])
                elif gpu_hit and number > self.seen:
                    self.seen = number
                    found[f"GPU {gpu_hit[2]}: Xid {gpu_hit[3]} in the kernel log"] = XIDS.get(gpu_hit[3], "")


def classify(error: str, rest: str) -> tuple[str, str]:
    """A sentence on an error in the kernel log, and the resulting state of the node; empty if it does not change."""
    device = re.search(r"\bnd-id=(\w{1,8})", rest)
    lost = error in LOST or "action=TERMINATE_INSTANCE" in rest
    state = "" if error == ELSEWHERE else FAILED if lost else DRAINING
    return f"Neuron device {device[1] if device else 'unknown'}: {error} in the kernel log", state


def counters() -> dict[str, int]:
    """The readable counters by device and name, such as `neuron3/mem_ecc_uncorrected`.

    They are searched by name, because driver 2.31 moved files of this tree (sysfs guide at 2.33.0).
    """
    counts: dict[str, int] = {}
    for device in files.path(DEVICES).glob("neuron*"):
        counts.update(_counts(device, device.name, COUNTERS))
    return counts


def core_counters() -> dict[str, int]:
    """The readable counters of cores, such as `neuron3/neuron_core1/hw_nc_ue_error`.

    Cores are searched by name too, because the paths of driver 2.31 are not known here.
    """
    counts: dict[str, int] = {}
    for device in files.path(DEVICES).glob("neuron*"):
        for core in device.rglob("neuron_core*"):
            counts.update(_counts(core, f"{device.name}/{core.name}", CORE_COUNTERS))
    return counts


def unhealthy() -> list[str]:
    """The unhealthy components by device, as in `Neuron device 3: hbm, link_efa`."""
    found: list[str] = []
    for device in sorted(files.path(DEVICES).glob("neuron*")):
        for file in _named(device, [HEALTH]):
            named = re.split(r"[\s,]+", files.read(str(file)))
            if failing := [component for component in COMPONENTS if component in named]:
                found.append(f"Neuron device {device.name[6:]}: {', '.join(failing)}")
    return found


def check_errors(before: dict[str, int], now: dict[str, int], unhealthy: list[str]) -> Check:
    """Errors in the counters of devices and cores before and after the tests.

    Errors during the tests fail the node, except repairable ones. Other errors and reports of the firmware are
    warnings, because it is not documented whether a healthy node has none at its first boot. Missing counters are also
    a warning.
    """
    increased = {key: count - before[key] for key, count in now.items() if count > before.get(key, count)}
    fatal = any(COUNTERS.get(key.rsplit("/", 1)[1], (FAILED,))[0] == FAILED for key in increased)
    findings = [_error(key, count) for key, count in increased.items()]
    findings += [f"{_error(key, count)}, before the tests" for key, count in before.items() if count]
    findings += [f"{text} unhealthy" for text in unhealthy]
    if not now:
        findings.append("the driver shows no error counters")
    elif not any(key.count("/") == 2 for key in now):
        findings.append("the driver shows no error counters of cores")
    shown = "; ".join([*findings[:ERRORS_NAMED], *["and others"] * (len(findings) > ERRORS_NAMED)])
    found = Check("hardware-errors", "none", shown or "none", not findings, f"hardware errors: {shown}")
    return found if fatal or found.ok else found.warned()


def _error(key: str, count: int) -> str:
    *parents, name = key.split("/")
    core = f", {parents[1].replace('neuron_core', 'core ')}" if parents[1:] else ""
    words = CORE_COUNTERS.get(name) or COUNTERS[name][1]
    return f"Neuron device {parents[0][6:]}{core}: {count} {words}"


def _counts(top: Path, place: str, names: Collection[str]) -> dict[str, int]:
    found = ((file, files.read(str(file)).strip()) for file in _named(top, names))
    return {
        f"{place}/{file.parent.name if file.name == 'total' else file.name}": int(text)
        for file, text in found
        if text.isdigit()
    }


def _named(top: Path, names: Collection[str]) -> Iterator[Path]:
    """The files with these names below a folder, or `total` in folders with these names, without those of cores."""
    for folder, folders, here in os.walk(top):
        folders[:] = [name for name in folders if not name.startswith("neuron_core")]
        yield from (Path(folder) / name for name in here if name in names)
        yield from (Path(folder) / name / "total" for name in folders if name in names)


def increases(before: dict[str, int], now: dict[str, int]) -> dict[str, str]:
    """The state of the node for each counter that has increased, by sentence."""
    found: dict[str, str] = {}
    for key, count in now.items():
        device, name = key.split("/")
        if count > before.get(key, count):
            state, words = COUNTERS[name]
            found[f"Neuron device {device[6:]}: new {words} ({name})"] = state
    return found
