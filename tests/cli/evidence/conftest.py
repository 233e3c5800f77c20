"""Fixtures of the tests of `trn bench`."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.evidence.bench_jobs import FILE, JOB_FILE, work
from tests.cli.jobs.cluster_with_jobs import Cluster
from trainium_cli.evidence import bench_runs
from trainium_wire.job import Job


class Clock(datetime):
    """Advances by a second at each call: a job ID contains the second of its start."""

    seconds = 0

    @classmethod
    def now(cls, tz: object = None) -> "Clock":  # noqa: ARG003  # as datetime has it
        cls.seconds += 1
        return cls(2026, 11, 24, 12, tzinfo=UTC) + timedelta(seconds=cls.seconds)


@pytest.fixture
def jobs(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs that nodes have run: each ends at once, with five steps of half a second."""
    monkeypatch.setattr(Clock, "seconds", 0)
    monkeypatch.setattr(bench_runs, "datetime", Clock)
    Path("bench.toml").write_text(FILE)
    Path("job.toml").write_text(JOB_FILE)
    started: list[Job] = []
    cluster.while_paused = lambda: work(cluster, started)
    return started
