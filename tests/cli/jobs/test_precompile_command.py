"""`trn precompile` before it calls AWS, and the end of a host while its job is followed."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from tests.cli.jobs.cluster_with_jobs import TWO, Cluster
from tests.cli.jobs.test_job_commands import run_to_the_end
from tests.cli.running import run
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs import precompiling
from trainium_cli.jobs.precompiling import HostGoneError, HostWatch
from trainium_core.nodes.aws_precompile_host import HostState

HOST = ("-c", "trn:precompile_instance_type=r7i.24xlarge")


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "job.toml"
    path.write_text('name = "graphs"\ncommand = "python compile.py --steps 5"\n')
    return str(path)


def test_dry_run_shows_commands_of_host(file: str) -> None:
    shown = run("precompile", *TWO, *HOST, "--dry-run", file)
    assert shown.exit_code == ExitCode.OK, shown.output
    assert "export NEURON_PLATFORM_TARGET_OVERRIDE=" in shown.stdout
    assert "python compile.py --steps 5" in shown.stdout


def test_run_does_not_precompile_modules_of_earlier_job(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    def earlier(*_: object) -> str:
        return "train-20261122-110000"

    monkeypatch.setattr(precompiling, "earlier_compilation", earlier)
    ended, job = run_to_the_end(cluster, "succeeded", *HOST, "--precompile", script=file)
    assert ended.exit_code == ExitCode.OK, ended.output
    assert "Not precompiled: train-20261122-110000 seems to have compiled the same" in ended.stderr
    assert job.name == "graphs"


@pytest.mark.usefixtures("cluster")
def test_unknown_job_to_resume_is_refused_before_precompile(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    started: list[str] = []

    def start(*_: object, **_options: object) -> None:
        started.append("the host")

    monkeypatch.setattr(precompiling, "precompile_first", start)
    ended = run("run", *TWO, *HOST, "--precompile", "--yes", "--resume", "typo", file)
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "typo is not a job of this cluster" in ended.stderr
    assert started == []


class Host:
    """Shows one state after the other."""

    def __init__(self, *states: HostState | None) -> None:
        self._states: Iterator[HostState | None] = iter(states)

    def state(self, *, since: datetime) -> HostState | None:  # noqa: ARG002
        return next(self._states)

    def failure(self, instance_id: str) -> str:
        return f"{instance_id}: the disk is full"


def watched(*states: HostState | None) -> None:
    watch = HostWatch(cast(Any, Host(*states)), datetime.now(UTC))
    for _ in states:
        watch.pause(0)


THERE = HostState(wanted=True, instances=("i-1",))
GONE = HostState(wanted=False)


def test_host_that_ends_with_its_job_is_not_a_failure() -> None:
    watched(HostState(wanted=True), THERE, GONE)


@pytest.mark.parametrize(
    ("states", "reason"),
    [
        ((THERE, GONE, GONE), "i-1: the disk is full"),
        ((GONE, GONE), "the host was terminated before its job ended"),
        ((HostState(wanted=True, refusal="VcpuLimitExceeded"),), "EC2 did not launch a host: VcpuLimitExceeded"),
        ((None,), "the Auto Scaling group of the host was deleted"),
    ],
    ids=["failed", "ended", "refused", "deleted"],
)
def test_host_that_ends_before_its_job_names_the_reason(states: tuple[HostState | None, ...], reason: str) -> None:
    with pytest.raises(HostGoneError, match=reason):
        watched(*states)
