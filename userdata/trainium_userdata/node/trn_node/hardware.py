"""Errors of the Neuron devices: those in the kernel's log, and the counters of uncorrected memory errors.

Sources: AWS Neuron SDK documentation at 2.32.0, neuron-runtime/nrt-troubleshoot.rst, its node problem detector
(deploy/infrastructure/problem-detector-irsa.rst) and tools/neuron-sys-tools/neuron-sysfs-user-guide.rst.
"""

from __future__ import annotations

import os
import re

from . import files

KMSG = "dev/kmsg"
DEVICES = "sys/devices/virtual/neuron_device"
BUFFER = 16384
"""Bytes. /dev/kmsg gives one record for each read, and none for a buffer that is too small."""

FAILED = "failed"
DRAINING = "draining"
# The hardware error, if any, is another node's.
ELSEWHERE = "HANG_ON_COLLECTIVES"
LOST = ("SRAM_UNCORRECTABLE_ERROR", "NC_UNCORRECTABLE_ERROR", "HBM_UNCORRECTABLE_ERROR", "DMA_ERROR")
COUNTERS = {
    "mem_ecc_uncorrected": (FAILED, "uncorrectable memory errors"),
    "sram_ecc_uncorrected": (FAILED, "uncorrectable SRAM errors"),
    "mem_ecc_repairable_uncorrected": (DRAINING, "repairable memory errors: reload the driver or reboot"),
}

_RECORD = re.compile(r"(?:\d+,(\d+),[^;]*;)?.*?NEURON_HW_ERR=([A-Z0-9_]{1,64})(.*)")


class KernelLog:
    """seen: sequence number of the last record with an error that was read in this boot; -1: none."""

    def __init__(self, seen: int) -> None:
        self.seen = seen
        self._file = -1

    def errors(self) -> dict[str, str]:
        """What each error since the last call makes of the node, by sentence. Raises OSError without a kernel log."""
        if self._file < 0:
            self._file = os.open(files.path(KMSG), os.O_RDONLY | os.O_NONBLOCK)
        found: dict[str, str] = {}
        while True:
            try:
                text = os.read(self._file, BUFFER).decode(errors="replace")
            except BlockingIOError:
                return found
            except BrokenPipeError:
                # The oldest records were overwritten; the next read goes on after them.
                continue
            if not text:
                return found
            for hit in filter(None, map(_RECORD.match, text.splitlines())):
                number = int(hit[1] or self.seen + 1)
                if number > self.seen:
                    self.seen = number
                    found.update([judge(hit[2], hit[3])])


def judge(error: str, rest: str) -> tuple[str, str]:
    """A sentence on an error of the kernel's log, and the state of the node after it; empty: it says nothing of it."""
    device = re.search(r"\bnd-id=(\w{1,8})", rest)
    lost = error in LOST or "action=TERMINATE_INSTANCE" in rest
    state = "" if error == ELSEWHERE else FAILED if lost else DRAINING
    return f"Neuron device {device[1] if device else 'unknown'}: {error} in the kernel log", state


def counters() -> dict[str, int]:
    """The counters by device and name, as in `neuron3/mem_ecc_uncorrected`; without those that cannot be read.

    They are sought by name: driver 2.31 moves files of this tree (the guide at 2.33.0).
    """
    counts: dict[str, int] = {}
    for device in files.path(DEVICES).glob("neuron*"):
        for folder, folders, here in os.walk(device):
            # Counters of the cores, hundreds of them, and none of memory errors.
            folders[:] = [name for name in folders if not name.startswith("neuron_core")]
            for name in COUNTERS.keys() & {*here, *folders}:
                file = os.path.join(folder, name, "total" if name in folders else "")  # noqa: PTH118
                text = files.read(file.rstrip("/"))
                if text.strip().isdigit():
                    counts[f"{device.name}/{name}"] = int(text)
    return counts


def rises(before: dict[str, int], now: dict[str, int]) -> dict[str, str]:
    """What each counter that is higher than before makes of the node, by sentence."""
    found: dict[str, str] = {}
    for key, count in now.items():
        device, name = key.split("/")
        if count > before.get(key, count):
            state, words = COUNTERS[name]
            found[f"Neuron device {device[6:]}: new {words} ({name})"] = state
    return found
