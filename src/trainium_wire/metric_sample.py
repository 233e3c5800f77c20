"""The metrics of a node in one minute, as nodes write them to S3."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, cast

from trainium_wire.formats import moment, time_text
from trainium_wire.job import is_job_id

VERSION = 1
"""The version of the samples in a record. Readers ignore other versions."""

MAX_SAMPLES = 15
"""Maximum number of samples in a record. Nodes send their reports every four to five minutes."""

_PERCENT = ("core_utilization", "memory_utilization")


@dataclass(frozen=True)
class MetricSample:
    """The metrics of one node. None means unknown, never 0.

    Attributes:
        at: The end of the minute.
        job: The job that holds the node; empty without one.
        core_utilization: Mean utilization of all NeuronCores or GPUs in percent.
        memory_utilization: Used part of the device memory in percent.
        execution_errors: Executions on NeuronCores that failed, or completed with errors such as NaN.
        ecc_corrected: Corrected memory errors.
        ecc_uncorrected: Uncorrected memory errors.
        efa_sent_bytes, efa_received_bytes: Traffic of all EFA devices.
        efa_retransmitted_packets: Packets that the EFA devices sent again.
    """

    at: datetime
    job: str = ""
    core_utilization: float | None = None
    memory_utilization: float | None = None
    execution_errors: float | None = None
    ecc_corrected: float | None = None
    ecc_uncorrected: float | None = None
    efa_sent_bytes: float | None = None
    efa_received_bytes: float | None = None
    efa_retransmitted_packets: float | None = None

    @property
    def values(self) -> dict[str, float | None]:
        """The metrics by the names of their attributes."""
        return {name: getattr(self, name) for name in METRICS}


@dataclass(frozen=True)
class RecentMetrics:
    """The metrics of one node: the utilization in the last minute, and the errors in the minutes of the record.

    None means unknown.
    """

    core_utilization: float | None = None
    memory_utilization: float | None = None
    execution_errors: float | None = None
    ecc_corrected: float | None = None
    ecc_uncorrected: float | None = None

    @property
    def errors(self) -> float | None:
        """Failed executions and uncorrected memory errors; None if both are unknown."""
        return known_sum([self.execution_errors, self.ecc_uncorrected])


NOT_MEASURED = RecentMetrics()


def recent_metrics(samples: Sequence[MetricSample]) -> RecentMetrics:
    if not samples:
        return NOT_MEASURED
    last = samples[-1]
    return RecentMetrics(
        core_utilization=last.core_utilization,
        memory_utilization=last.memory_utilization,
        execution_errors=known_sum([sample.execution_errors for sample in samples]),
        ecc_corrected=known_sum([sample.ecc_corrected for sample in samples]),
        ecc_uncorrected=known_sum([sample.ecc_uncorrected for sample in samples]),
    )


def known_sum(values: Sequence[float | None]) -> float | None:
    """The sum of the known values; None if all are unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


METRICS = tuple(field.name for field in fields(MetricSample) if field.name not in ("at", "job"))
"""The names of the metrics of a sample."""


def samples_record(samples: Sequence[MetricSample]) -> dict[str, Any]:
    """The newest samples as JSON, at most MAX_SAMPLES. Unknown values are left out."""
    newest = samples[-MAX_SAMPLES:]
    return {"version": VERSION, "samples": [_as_record(sample) for sample in newest]}


def samples_from_record(raw: object) -> tuple[MetricSample, ...]:
    """Parse the result of `samples_record`. What is not valid is unknown: any process of a node can write it."""
    record = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    listed = record.get("samples")
    if record.get("version") != VERSION or not isinstance(listed, list):
        return ()
    parsed = [_sample(item) for item in cast("list[Any]", listed)[-MAX_SAMPLES:]]
    return tuple(sorted((sample for sample in parsed if sample), key=lambda sample: sample.at))


def _as_record(sample: MetricSample) -> dict[str, Any]:
    known = {name: value for name, value in sample.values.items() if value is not None}
    return {"at": time_text(sample.at), **({"job": sample.job} if sample.job else {}), **known}


def _sample(raw: object) -> MetricSample | None:
    record = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    at, job = moment(record.get("at")), record.get("job")
    if at is None:
        return None
    values = {name: _value(name, record.get(name)) for name in METRICS}
    return MetricSample(at=at, job=job if isinstance(job, str) and is_job_id(job) else "", **values)


def _value(name: str, raw: object) -> float | None:
    if not isinstance(raw, (int, float)) or isinstance(raw, bool):
        return None
    is_valid = 0 <= raw <= (100 if name in _PERCENT else sys.float_info.max)
    return raw if is_valid else None


TOTALS = ("memory_utilization", "execution_errors", "ecc_corrected", "ecc_uncorrected")
"""The metrics of an attempt beside the utilization of the cores: the maximum of the first, the sums of the others."""

MAX_BUCKETS = 60
"""Maximum number of points of the utilization of a job over time."""


@dataclass(frozen=True)
class Utilization:
    """The metrics of one node in one attempt of a job. None means unknown.

    Attributes:
        minutes: Minutes of each value of `over_time`.
        over_time: Mean utilization of all NeuronCores or GPUs in percent, from the start of the attempt.
        core_utilization: Its mean.
        memory_utilization: Highest used part of the device memory in percent.
        execution_errors, ecc_corrected, ecc_uncorrected: Sums.
    """

    minutes: int = 1
    over_time: tuple[float | None, ...] = ()
    core_utilization: float | None = None
    memory_utilization: float | None = None
    execution_errors: float | None = None
    ecc_corrected: float | None = None
    ecc_uncorrected: float | None = None


def utilization(raw: object) -> Utilization | None:
    """Parse the record of an attempt's metrics; None if there is none."""
    record = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    buckets, minutes = record.get("buckets"), record.get("minutes")
    if not isinstance(buckets, list) or not isinstance(minutes, int) or minutes < 1:
        return None
    parts = [_bucket(bucket) for bucket in cast("list[Any]", buckets)[:MAX_BUCKETS]]
    total, number = sum(part[0] for part in parts), sum(part[1] for part in parts)
    return Utilization(
        minutes=minutes,
        over_time=tuple(_value("core_utilization", one / count) if count else None for one, count in parts),
        core_utilization=_value("core_utilization", total / number) if number else None,
        **{name: _value(name, record.get(name)) for name in TOTALS},
    )


def _bucket(raw: object) -> tuple[float, float]:
    """The sum and the number of known values."""
    pair = cast("list[Any]", raw) if isinstance(raw, list) else []
    values = [_value("", part) for part in pair]
    return (values[0] or 0, values[1] or 0) if len(values) == 2 else (0, 0)
