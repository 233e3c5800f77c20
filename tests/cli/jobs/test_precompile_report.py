"""The report of `trn precompile` about a host that ran the nodes' own wrapper and fake compilers as real processes."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.jobs.cluster_with_jobs import TWO, Cluster
from tests.cli.running import run
from tests.core.job_bucket import BUCKET, REGION
from tests.userdata import fake_compiler
from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.cache_node import place
from tests.userdata.job_nodes import BUCKET as BUCKET_OF_NODES
from tests.userdata.job_nodes import JOB, JobNodes
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs import precompiling
from trainium_core.jobs.aws_jobs import AwsJobs
from trainium_core.nodes.aws_precompile_host import HostState
from trainium_wire.keys import PRECOMPILE_JOB_KEY

HOST = "r7i.24xlarge"
USD_PER_HOUR = 6.35
MODULES = tuple("abcd")
FAILS = "c"
PROCESSES = 64
"""The world size of the two trn1.32xlarge that modules are compiled for."""
COMPILE_SECONDS = 0.4


class Host:
    """Runs its job when it is launched, and exists for an hour."""

    def __init__(self, cluster: Cluster, nodes: JobNodes) -> None:
        self._job_nodes, self._nodes = cluster.job_nodes, nodes
        self.is_ended = False

    def state(self, *, since: datetime | None = None) -> HostState:  # noqa: ARG002
        return HostState(wanted=False)

    def start(self, until: datetime) -> None:
        assert until > datetime.now(UTC)
        current = AwsJobs(REGION, BUCKET, current_key=PRECOMPILE_JOB_KEY).current()
        assert current
        job, nodes = current.job, self._nodes
        venv = nodes.folder / "venv"
        (venv / f"lib/python3.11/site-packages/neuronx_cc-{fake_compiler.COMPILER}.dist-info").mkdir(parents=True)
        cache = {"url": "s3://compiled/cache", "folder": str(nodes.folder / "cache"), "venv": str(venv)}
        nodes.start(
            "",
            command=job.command,
            processes_per_node=job.processes_per_node,
            environment={**job.environment},
            compile_cache={**cache, "stack": "xla", "instance_type": "trn1.32xlarge", "lnc": 1},
        )
        nodes.wait()
        job_nodes = replace(self._job_nodes, job=job)
        job_nodes.start()
        prefix = f"{BUCKET_OF_NODES}/jobs/{JOB}/"
        for key, content in [*nodes.aws.records.items()]:
            if key.startswith(f"{prefix}attempts/"):
                job_nodes.put(key.removeprefix(prefix), content)
        later = datetime.now(UTC) + timedelta(hours=1)
        job_nodes.put("end.json", {**nodes.end, "attempts": 1, "at": f"{later:%Y-%m-%dT%H:%M:%SZ}"})

    def end(self) -> None:
        self.is_ended = True


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[JobNodes]:
    with AwsStandIn(region=REGION) as aws:
        made = JobNodes(tmp_path / "host", aws)
        yield made
        made.close()


@pytest.fixture
def host(cluster: Cluster, nodes: JobNodes, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(cluster, nodes)

    def returning(value: object) -> Callable[..., object]:
        return lambda *_, **__: value

    for name, value in {"AwsPrecompileHost": host, "AwsPrices": None}.items():
        monkeypatch.setattr(precompiling, name, returning(value))
    return host


def precompile(*words: str, fails: str = "", code: int = 0) -> Any:
    """Run a command that precompiles.

    Args:
        words: The command. Default: `trn precompile`.
        fails: The module whose compilation fails.
        code: The exit code of the job's command.
    """
    prices = f"product,instance_type,region,usd,date,source\non-demand,{HOST},{REGION},{USD_PER_HOUR},2026-11-23,test\n"
    Path("prices.csv").write_text(prices)
    compiles = f"{sys.executable} {fake_compiler.__file__} xla $NEURON_COMPILE_CACHE_URL"
    command = " ".join(f"{compiles} {module} &" for module in MODULES) + f" wait; exit {code}"
    environment = {"COMPILE_SECONDS": str(COMPILE_SECONDS), "FAIL": fails}
    table = "".join(f"{name} = {json.dumps(value)}\n" for name, value in environment.items())
    Path("job.toml").write_text(f'name = "graphs"\ncommand = {json.dumps(command)}\n[environment]\n{table}')
    own = ("-c", f"trn:precompile_instance_type={HOST}", "-c", "trn:prices=prices.csv")
    return run(*(words or ("precompile",)), *TWO, *own, "--yes", "job.toml")


def test_report_has_modules_seconds_bytes_and_dollars(host: Host, nodes: JobNodes) -> None:
    ended = precompile()
    assert ended.exit_code == ExitCode.OK, ended.output
    seconds = re.search(rf"xla +{len(MODULES)} modules compiled, (\d+) s of compilation, ", ended.stdout)
    assert seconds, ended.stdout
    assert round(len(MODULES) * COMPILE_SECONDS) <= int(seconds[1]) < 60
    stored = [content for key, content in nodes.aws.records.items() if key.startswith("compiled/")]
    assert len(stored) == len(MODULES)
    assert f"{sum(map(len, stored)) // 1024} KiB stored, 0 modules were stored before" in ended.stdout
    where = place(instance_type="trn1.32xlarge", lnc=1, world_size=PROCESSES).path
    assert re.search(rf"place +{re.escape(where)}", ended.stdout)
    dollars = re.search(r"host +60 min, \$([0-9.]+)\n", ended.stdout)
    assert dollars, ended.stdout
    assert float(dollars[1]) == pytest.approx(USD_PER_HOUR, rel=0.02)
    assert host.is_ended


def test_failed_modules_are_named_with_reason(host: Host) -> None:
    ended = precompile(fails=FAILS)
    assert re.search(rf"xla +{len(MODULES) - 1} modules compiled, 1 failed, ", ended.stdout), ended.stdout
    assert f"{fake_compiler.name_of('xla', FAILS)}: failed: [F137] neuronx-cc was forcibly killed" in ended.stdout
    assert host.is_ended


def test_run_precompiles_before_the_job_starts(cluster: Cluster, host: Host) -> None:
    started: list[str] = []

    def nodes_work() -> None:
        current = cluster.jobs.current()
        if current and current.job.id not in started:
            assert host.is_ended
            started.append(current.job.id)
            job_nodes = replace(cluster.job_nodes, job=current.job)
            job_nodes.start()
            job_nodes.end_attempt("succeeded")
            job_nodes.end("succeeded")

    cluster.while_paused = nodes_work
    ended = precompile("run", "--precompile")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert f"{len(MODULES)} modules compiled" in ended.stdout
    assert [job.split("-")[0] for job in started] == ["graphs"]


def test_run_starts_no_job_after_incomplete_precompile(cluster: Cluster, host: Host) -> None:
    ended = precompile("run", "--precompile", fails=FAILS, code=1)
    assert ended.exit_code == ExitCode.NOT_READY
    assert "The job was not started, because the compilation is incomplete" in ended.stderr
    assert host.is_ended
    assert cluster.jobs.current() is None
