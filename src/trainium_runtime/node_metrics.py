"""The metrics of the nodes in CloudWatch, as lines of a log in the embedded metric format.

Source: Amazon CloudWatch User Guide, "Specification: Embedded metric format"
(github.com/awsdocs/amazon-cloudwatch-user-guide, commit 20a560c).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from trainium_runtime.facts import facts
from trainium_wire.metric_sample import MetricSample
from trainium_wire.node_record import StoredRecord
from trainium_wire.usage import NodeUsage

METRICS_NAMESPACE = "TrainiumCdk"
"""The namespace of a cluster's metrics is this, a slash and the name of the cluster."""

NODE_DIMENSION = "InstanceId"

CORE_UTILIZATION = "CoreUtilization"
MEMORY_UTILIZATION = "MemoryUtilization"
EXECUTION_ERRORS = "ExecutionErrors"
UNCORRECTED_MEMORY_ERRORS = "UncorrectedMemoryErrors"
JOB_CORE_UTILIZATION = "JobCoreUtilization"
SILENT_NODES = "SilentNodes"

NODE_METRICS = {
    CORE_UTILIZATION: ("core_utilization", "Percent"),
    MEMORY_UTILIZATION: ("memory_utilization", "Percent"),
    EXECUTION_ERRORS: ("execution_errors", "Count"),
    UNCORRECTED_MEMORY_ERRORS: ("ecc_uncorrected", "Count"),
}
"""The attribute of a sample, and the unit, of each metric that exists for the cluster and, if wanted, for each node."""

CLUSTER_METRICS = {JOB_CORE_UTILIZATION: "Percent", SILENT_NODES: "Count"}
"""The unit of each metric that exists only for the cluster."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """The samples of one run: those after `start`, up to `end`. The windows of successive runs do not overlap.

    They end before the run, because nodes send their reports every few minutes.
    """

    start: datetime
    end: datetime

    @classmethod
    def before(cls, run: datetime) -> "Window":
        """The window of a run, by its scheduled time."""
        end = run - timedelta(minutes=facts()["metrics"]["minutes_before_run"])
        return cls(start=end - timedelta(minutes=facts()["metrics"]["minutes_between_runs"]), end=end)

    def __contains__(self, at: datetime) -> bool:
        return self.start < at <= self.end


@dataclass(frozen=True, kw_only=True)
class MetricLines:
    """The lines of a cluster.

    Attributes:
        cluster: Name of the cluster.
        by_node: Whether each node has its own metrics, in addition to those of the cluster.
    """

    cluster: str
    by_node: bool

    def lines(
        self, window: Window, usages: Mapping[str, NodeUsage], records: Mapping[str, StoredRecord]
    ) -> Iterator[Mapping[str, Any]]:
        """The lines of the samples in a window, and one about nodes whose utilization no sample has.

        Args:
            usages: Readable usage reports by instance, also of instances that are gone.
            records: Records of the nodes that should run. Those that were not verified before the window, or have
                failed, are not silent.
        """
        samples = {
            instance: [sample for sample in usage.samples if sample.at in window] for instance, usage in usages.items()
        }
        for instance, found in samples.items():
            for sample in found:
                yield from self._sample(instance, sample)
        expected = [
            instance
            for instance, stored in records.items()
            if stored.record.state != "failed" and stored.written <= window.start
        ]
        measured = {
            instance
            for instance, found in samples.items()
            if any(sample.core_utilization is not None for sample in found)
        }
        silent = sorted({*expected} - measured)
        if expected:  # a cluster without nodes has no metrics, which cost nothing
            metadata = self._metadata(window.end, self._directive([SILENT_NODES]))
            yield {**metadata, SILENT_NODES: len(silent), "silent": silent}

    def _sample(self, instance: str, sample: MetricSample) -> Iterator[Mapping[str, Any]]:
        known = {
            name: value
            for name, (attribute, _) in NODE_METRICS.items()
            if (value := getattr(sample, attribute)) is not None
        }
        if not known:
            return
        directives = [self._directive(known, by_node=self.by_node)]
        held = {NODE_DIMENSION: instance, **({"job": sample.job} if sample.job else {})}
        if sample.job and CORE_UTILIZATION in known:
            directives.append(self._directive([JOB_CORE_UTILIZATION]))
            known[JOB_CORE_UTILIZATION] = known[CORE_UTILIZATION]
        yield {**self._metadata(sample.at, *directives), **held, **known}

    def _directive(self, names: Any, *, by_node: bool = False) -> Mapping[str, Any]:
        return {
            "Namespace": f"{METRICS_NAMESPACE}/{self.cluster}",
            "Dimensions": [[NODE_DIMENSION], []] if by_node else [[]],
            "Metrics": [{"Name": name, "Unit": _UNITS[name]} for name in names],
        }

    def _metadata(self, at: datetime, *directives: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"_aws": {"Timestamp": round(at.timestamp() * 1000), "CloudWatchMetrics": list(directives)}}


_UNITS = {**{name: unit for name, (_, unit) in NODE_METRICS.items()}, **CLUSTER_METRICS}
