"""The metrics of this node: one sample for each minute.

Source of the EFA counters: EC2 User Guide, "Monitor an Elastic Fabric Adapter on an Amazon EC2 instance".
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from trainium_wire.metric_sample import MAX_BUCKETS, MAX_SAMPLES, TOTALS, MetricSample

from . import files, gpu, hardware
from .device_readings import SECONDS, Reading, gpu_readings, neuron_readings

JOB_METRICS = "run/trn/job-metrics.json"
EFA_COUNTERS = {
    "tx_bytes": "efa_sent_bytes",
    "rx_bytes": "efa_received_bytes",
    "retrans_pkts": "efa_retransmitted_packets",
}


class Metrics:
    """The samples of the last minutes. A thread, which starts with `start`, reads the tool of the devices.

    Attributes:
        samples: The samples, oldest first.
        totals: What was counted since the start, by the names of the attributes of a sample. Contains only what the
            last sample could read.
    """

    def __init__(self) -> None:
        self.samples: deque[MetricSample] = deque(maxlen=MAX_SAMPLES)
        self.totals: dict[str, int] = {}
        self._sums: dict[str, int] = {}
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

    def add_now(self, now: float) -> None:
        """Let the next poll take a sample of the counters, unless it takes one or the last one has their counts."""
        if self._readings:
            return
        has_gpus = files.path(gpu.DRIVER).exists()
        counts = gpu.error_counts(gpu.SHORT_SECONDS) if has_gpus else hardware.counters()
        if counts != self._counts.get("ecc_uncorrected"):
            self.add(Reading(uncorrected=counts), now)

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
        counts = {
            "ecc_corrected": reading.corrected,
            "ecc_uncorrected": hardware.counters() if reading.uncorrected is None else reading.uncorrected,
            **{field: efa_counts(name) for name, field in EFA_COUNTERS.items()},
        }
        increases = {field: self._increase(field, found) for field, found in counts.items()}
        increases["execution_errors"] = reading.execution_errors
        readable = [field for field in increases if counts.get(field) or increases[field] is not None]
        self._sums.update({field: self._sums.get(field, 0) + (increases[field] or 0) for field in readable})
        self.totals = {field: self._sums[field] for field in readable}
        return MetricSample(
            at=datetime.fromtimestamp(at, timezone.utc),
            job=job,
            core_utilization=reading.core_utilization,
            memory_utilization=reading.memory_utilization,
            **increases,
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


class JobMetrics:
    """The metrics of this node in its current attempt, in a file that the program of the job puts into its report."""

    def __init__(self) -> None:
        self._record: dict[str, Any] = {}
        with contextlib.suppress(ValueError):
            self._record = json.loads(files.read(JOB_METRICS))

    def add(self, job: str, attempt: int, samples: list[MetricSample]) -> None:
        """Add the samples of an attempt. Raises OSError."""
        same = (self._record.get("job"), self._record.get("attempt")) == (job, attempt)
        if not same:
            self._record = {"job": job, "attempt": attempt, "minutes": 1, "taken": 0, "buckets": []}
        for sample in samples:
            self._add(self._record, sample)
        if samples:
            files.write(JOB_METRICS, json.dumps(self._record))

    def _add(self, record: dict[str, Any], sample: MetricSample) -> None:
        buckets, number = record["buckets"], record["taken"] // record["minutes"]
        if number == MAX_BUCKETS:
            pairs = zip(buckets[::2], buckets[1::2])
            record["buckets"] = buckets = [[one[0] + other[0], one[1] + other[1]] for one, other in pairs]
            record["minutes"] *= 2
            number //= 2
        if number == len(buckets):
            buckets.append([0, 0])
        if sample.core_utilization is not None:
            buckets[number][0] = round(buckets[number][0] + sample.core_utilization, 2)
            buckets[number][1] += 1
        record["taken"] += 1
        for name in TOTALS:
            known = [value for value in (record.get(name), getattr(sample, name)) if value is not None]
            record[name] = (max if name == TOTALS[0] else sum)(known) if known else None
