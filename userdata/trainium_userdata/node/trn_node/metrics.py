"""The metrics of this node: one sample for each minute.

Source of the EFA counters: EC2 User Guide, "Monitor an Elastic Fabric Adapter on an Amazon EC2 instance".
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime, timezone

from trainium_wire.metric_sample import MAX_SAMPLES, MetricSample

from . import files, gpu, hardware
from .device_readings import SECONDS, Reading, gpu_readings, neuron_readings

EFA_COUNTERS = {
    "tx_bytes": "efa_sent_bytes",
    "rx_bytes": "efa_received_bytes",
    "retrans_pkts": "efa_retransmitted_packets",
}


class Metrics:
    """The samples of the last minutes. A thread, which starts with `start`, reads the tool of the devices."""

    def __init__(self) -> None:
        self.samples: deque[MetricSample] = deque(maxlen=MAX_SAMPLES)
        self._readings: deque[tuple[float, Reading]] = deque(maxlen=MAX_SAMPLES)
        self._counts: dict[str, dict[str, int]] = {}
        self._sampled_at = 0.0
        self._has_reading = True

    def start(self, now: Callable[[], float] = time.time) -> None:
        """Read the tool until the process ends."""
        threading.Thread(target=self._read_forever, args=(now,), daemon=True, name="metrics").start()

    def add(self, reading: Reading, at: float) -> None:
        """Add what the tool reported at a time."""
        self._readings.append((at, reading))

    def poll(self, job: str, now: float) -> list[MetricSample]:
        """The new samples: one for each reading, or one of what is known without it, if there was none for too long.

        Args:
            job: ID of the job that holds the node; empty without one.
            now: Seconds since 1970.
        """
        new: list[MetricSample] = []
        while self._readings:
            at, reading = self._readings.popleft()
            new.append(self._sample(job, at, reading))
            self._has_reading = True
        self._sampled_at = self._sampled_at or now
        since = now - self._sampled_at
        # A reading may be a little late. The clock may have been set back.
        if not new and not 0 <= since < (2 if self._has_reading else 1) * SECONDS:
            new.append(self._sample(job, now, Reading()))
            self._has_reading = False
        if new:
            self._sampled_at = now
        self.samples.extend(new)
        return new

    def _sample(self, job: str, at: float, reading: Reading) -> MetricSample:
        counted = hardware.counters() if reading.uncorrected is None else reading.uncorrected
        efa = {field: self._increase(name, efa_counts(name)) for name, field in EFA_COUNTERS.items()}
        return MetricSample(
            at=datetime.fromtimestamp(at, timezone.utc),
            job=job,
            core_utilization=reading.core_utilization,
            memory_utilization=reading.memory_utilization,
            execution_errors=reading.execution_errors,
            ecc_corrected=self._increase("corrected", reading.corrected),
            ecc_uncorrected=self._increase("uncorrected", counted),
            **efa,
        )

    def _increase(self, name: str, counts: dict[str, int] | None) -> int | None:
        """The sum of the increases since the last sample; None if there are no counters now, or were none then.

        A counter that is lower than before, as after a driver was loaded again, has not increased.
        """
        if not counts:
            return None
        before, self._counts[name] = self._counts.get(name), counts
        if before is None:
            return None
        return sum(max(0, count - before.get(key, count)) for key, count in counts.items())

    def _read_forever(self, now: Callable[[], float]) -> None:
        while True:
            # Metrics must not end the watch, whatever a tool prints.
            with contextlib.suppress(Exception):
                for reading in gpu_readings() if files.path(gpu.DRIVER).exists() else neuron_readings():
                    self.add(reading, now())
            time.sleep(SECONDS)


def efa_counts(name: str) -> dict[str, int]:
    """One counter of all EFA devices, by file."""
    found = files.path("sys/class/infiniband").glob(f"*/ports/1/hw_counters/{name}")
    texts = {str(file): files.read(str(file)).strip() for file in found}
    return {file: int(text) for file, text in texts.items() if text.isdigit()}
