"""The metrics of this node for Prometheus: the watch writes a text, and the service trn-node-metrics serves it.

Source: Prometheus documentation, "Exposition formats" (text format 0.0.4) and "Metric and label naming".
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from trainium_wire.metric_sample import MetricSample

from . import files

TEXT = "run/trn/metrics.prom"
PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

GAUGES = {
    "core_utilization": ("trn_core_utilization_ratio", "Mean utilization of all cores or GPUs in the last minute"),
    "memory_utilization": ("trn_device_memory_used_ratio", "Used part of the device memory"),
}
"""Name and meaning of each percentage of a sample, which is exported as a number from 0 to 1."""

COUNTERS = {
    "execution_errors": (
        "trn_execution_errors_total",
        "Executions on NeuronCores with errors, such as NaN",
    ),
    "ecc_corrected": ("trn_corrected_memory_errors_total", "Corrected memory errors of the devices"),
    "ecc_uncorrected": ("trn_uncorrected_memory_errors_total", "Uncorrected memory errors of the devices"),
    "efa_sent_bytes": ("trn_efa_sent_bytes_total", "Bytes that the EFA devices sent"),
    "efa_received_bytes": ("trn_efa_received_bytes_total", "Bytes that the EFA devices received"),
    "efa_retransmitted_packets": ("trn_efa_retransmitted_packets_total", "Packets that the EFA devices sent again"),
}
"""Name and meaning of each total, which counts from the start of the watch."""

JOB = ("trn_job_info", "The job that holds the node")

LONGEST_AGE = 300
"""Seconds. An older text is not served: the watch writes at least every three minutes."""

CONNECTION_SECONDS = 10


def text(sample: MetricSample, totals: Mapping[str, float]) -> str:
    """The metrics in the text format. Unknown values are left out.

    Args:
        sample: The last sample.
        totals: The known totals, by the names of the attributes of a sample.
    """
    lines: list[str] = []
    for field, (name, meaning) in GAUGES.items():
        value = sample.values[field]
        if value is not None:
            lines += _metric(name, "gauge", meaning, f"{name} {value / 100:.6g}")
    for field, (name, meaning) in COUNTERS.items():
        if field in totals:
            lines += _metric(name, "counter", meaning, f"{name} {totals[field]}")
    if sample.job:
        lines += _metric(JOB[0], "gauge", JOB[1], f'{JOB[0]}{{job_id="{sample.job}"}} 1')
    return "".join(f"{line}\n" for line in lines)


def _metric(name: str, kind: str, meaning: str, line: str) -> tuple[str, str, str]:
    return f"# HELP {name} {meaning}.", f"# TYPE {name} {kind}", line


def write(sample: MetricSample, totals: Mapping[str, float]) -> None:
    """Write the text if the plan has a port for it. Does not raise, because the report of the node must not fail."""
    with contextlib.suppress(OSError, ValueError):
        if files.plan().get("metrics_port"):
            files.write(TEXT, text(sample, totals))


class MetricsHandler(BaseHTTPRequestHandler):
    """Answers GET requests for the text, with 503 if it is old or missing."""

    timeout = CONNECTION_SECONDS
    server_version, sys_version = "trn-node", ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != PATH:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        try:
            file = files.path(TEXT)
            content, age = file.read_bytes(), time.time() - file.stat().st_mtime
        except OSError:
            content, age = b"", LONGEST_AGE + 1
        if age > LONGEST_AGE:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, "no current sample: see trn-node-watch.service")
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: requests come every few seconds."""


def main() -> None:
    """Serve until the process is terminated. Raises OSError if the port is in use, and LookupError without a port."""
    ThreadingHTTPServer(("", files.plan()["metrics_port"]), MetricsHandler).serve_forever()


if __name__ == "__main__":
    main()
