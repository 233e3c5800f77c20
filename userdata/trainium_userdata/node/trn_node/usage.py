"""The usage of this node, for the controller, which stops unused nodes, and for `trn status`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

from trainium_wire.usage import NodeUsage, State

from . import files, prometheus
from .hardware import DEVICES
from .metrics import JobMetrics, Metrics
from .neuron import OBSERVERS
from .objects import Objects

SECONDS = 60
"""The interval between checks."""

SEND_SECONDS = 240
"""After this time, an unchanged state is sent again. Readers treat a state as unknown after `minutes_of_usage` of
facts.toml."""

NAMED = 3
"""The maximum number of named processes."""

GPUS = "proc/driver/nvidia/gpus"


class Usage:
    """`poll` checks the usage, and writes it with the metrics if it has changed or is old, or after an error.

    Between two polls, idle time increases by at most two minutes, so that a change of the clock hardly affects it.

    Args:
        s3: Requests to S3.
        on_errors: Called when a new sample has errors.
    """

    def __init__(self, s3: Objects, *, on_errors: Callable[[], object]) -> None:
        self.metrics, self._of_job = Metrics(), JobMetrics()
        self._s3, self._on_errors, self._has_unsent_errors = s3, on_errors, False
        self._idle_seconds = 0.0
        self._polled_at = 0.0
        self._sent: tuple[str, str] = ("", "")
        self._sent_at = 0.0

    def poll(self, url: str, job: str, now: float, *, attempt: int | None) -> None:
        """Check the usage, and write it if that is due. Raises OSError.

        Args:
            url: URL of the object.
            job: ID of the current job; empty without one.
            now: Seconds since 1970.
            attempt: The job's attempt on this node, 0 if it waits for nodes. None: the job does not hold this node.
        """
        state, detail = _state(job)
        samples = self.metrics.poll("" if attempt is None else job, now)
        if any(sample.execution_errors or sample.ecc_uncorrected for sample in samples):
            # A node that fails may be terminated soon.
            self._has_unsent_errors = True
            self._on_errors()
        if samples:
            prometheus.write(samples[-1], self.metrics.totals)
        if attempt:
            self._of_job.add(job, attempt, samples)
        elapsed = min(max(now - self._polled_at, 0), 2 * SECONDS) if self._polled_at else 0
        self._idle_seconds = self._idle_seconds + elapsed if state == self._sent[0] == "idle" else 0
        self._polled_at = now
        is_due = (state, detail) != self._sent or not 0 <= now - self._sent_at < SEND_SECONDS
        if self._has_unsent_errors or is_due:
            self._send(url, state, detail, now)

    def _send(self, url: str, state: State, detail: str, now: float) -> None:
        idle = timedelta(seconds=self._idle_seconds)
        usage = NodeUsage(state, datetime.fromtimestamp(now, timezone.utc), idle, detail, tuple(self.metrics.samples))
        self._s3.put(url, usage.to_json().encode())
        self._sent, self._sent_at, self._has_unsent_errors = (state, detail), now, False


def _state(job: str) -> tuple[State, str]:
    if job:
        return "in-use", job
    try:
        users = device_users()
    except OSError as error:
        return "unknown", f"the users of the devices are unknown: {error}"
    if users:
        more = [f"and {len(users) - NAMED} more"] * (len(users) > NAMED)
        return "in-use", ", ".join(users[:NAMED] + more)
    return "idle", ""


def device_users() -> list[str]:
    """Names and IDs of the processes that use a device, except OBSERVERS. Raises OSError if they are unknown."""
    if not any(files.path(DEVICES).glob("neuron*")) and not any(files.path(GPUS).glob("*")):
        raise OSError("the driver shows no Neuron device and no GPU")
    processes: list[str] = []
    for folder in files.path("proc").glob("[0-9]*"):
        try:
            name = (folder / "comm").read_text().strip()
            if name not in OBSERVERS and holds_a_device(folder):
                processes.append(f"{name} ({folder.name})")
        except (FileNotFoundError, ProcessLookupError):  # The process has ended in the meantime.
            continue
    return sorted(processes)


def holds_a_device(process: Path) -> bool:
    """Whether a process, by its folder in /proc, has opened a device. Raises OSError."""
    with os.scandir(process / "fd") as entries:
        return any(re.match(r"/dev/(neuron|nvidia)\d", os.readlink(entry)) for entry in entries)  # noqa: PTH115
