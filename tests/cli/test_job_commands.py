"""`trn run`, `jobs`, `logs`, `stop`, `cp` and `shell` against S3 of moto, with nodes that write what nodes write."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.cli.conftest import FakeLocating
from tests.cli.running import GOOD, run
from tests.cli.test_nodes_command import BOOTING, PROVEN, A, B
from tests.core.job_bucket import JOB, NodesOfAJob, job_bucket
from trainium_cli import job_cluster, job_submission
from trainium_cli.exit_codes import ExitCode
from trainium_core.clusters.account import ClusterStack
from trainium_core.jobs import follow
from trainium_core.jobs.aws_jobs import AwsJobs
from trainium_core.jobs.job import Job
from trainium_core.nodes.deployed_nodes import DeployedNodes

pytestmark = pytest.mark.usefixtures("credentials_of_nobody", "prices_of_the_snapshot")

TWO = (*GOOD, "-c", "trn:nodes=2")


@dataclass
class Cluster:
    """A deployed cluster. nodes: None when there is no stack. while_paused: what the nodes do between two looks."""

    jobs: AwsJobs
    writes: NodesOfAJob
    nodes: DeployedNodes | None = PROVEN
    while_paused: Callable[[], None] = lambda: None


@pytest.fixture
def prices_of_the_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_region: str) -> None:
        return None

    monkeypatch.setattr(job_submission, "AwsPrices", nobody)
    monkeypatch.setattr("trainium_cli.jobs_command.AwsPrices", nobody)


@pytest.fixture
def credentials_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cluster]:
    with job_bucket() as (jobs, writes):
        made = Cluster(jobs, writes)

        class Nodes:
            def __init__(self, _region: str) -> None: ...

            def nodes(self, _stack: str) -> DeployedNodes | None:
                return made.nodes

        def jobs_of(_plan: object, _stack: str) -> AwsJobs | None:
            return made.jobs if made.nodes else None

        def pause(_seconds: float) -> None:
            made.while_paused()

        monkeypatch.setattr(job_submission, "AwsNodes", Nodes)
        for module in (job_submission, job_cluster):
            monkeypatch.setattr(module, "cluster_jobs", jobs_of)
        monkeypatch.setattr("trainium_cli.run_command.cluster_jobs", jobs_of)
        monkeypatch.setattr(follow.time, "sleep", pause)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "160")
        Path("train.py").write_text("print('hello')\n")
        yield made


def run_to_the_end(cluster: Cluster, result: str, *arguments: str, **more: Any) -> tuple[Result, Job]:
    """`trn run` with nodes that start the job, print two lines and end it so."""
    started: list[Job] = []

    def nodes_work() -> None:
        current = cluster.jobs.current()
        assert current
        started.append(current.job)
        writes = replace(cluster.writes, job=current.job)
        writes.start()
        writes.node(0, "running", phases={"setup": 2, "running": 40}, progress={"step": 12, "loss": 2.5})
        writes.node(1, "running")
        writes.log(1, "[rank 0] hello\n[rank 1] hello too\n")
        writes.put("outputs/model/weights.bin", "weights")
        writes.put("outputs/../../evil", "no")
        writes.end_attempt(result, **more)
        writes.end(result, **more)

    cluster.while_paused = nodes_work
    ended = run("run", *TWO, *arguments, "train.py")
    return ended, started[0]


def test_a_job_is_started_followed_and_its_result_is_the_exit_code(cluster: Cluster) -> None:
    ended, job = run_to_the_end(cluster, "succeeded", "--env", "A=b", "--name", "first")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert job.id.startswith("first-20")
    assert (job.nodes, job.processes_per_node, job.environment) == (2, 32, {"A": "b"})
    assert job.source_sha256 == hashlib.sha256(cluster.writes.source(job)).hexdigest()
    assert "hello\n" in ended.stdout
    assert "hello too" not in ended.stdout
    assert "step 12, loss 2.5" in ended.stdout
    assert "█" in ended.stdout
    assert f"Started {job.id}." in ended.stderr


def test_a_job_that_failed_shows_the_first_traceback_with_node_and_rank(cluster: Cluster) -> None:
    failure = {"reason": "ValueError: no", "traceback": "Traceback ...\nValueError: no", "node": 1, "rank": 33}
    ended, _ = run_to_the_end(cluster, "failed", **failure)
    assert ended.exit_code == ExitCode.NOT_READY
    assert "Traceback ...\nValueError: no\n" in ended.stdout
    assert "node 1, rank 33" in ended.stdout


def test_outputs_are_fetched_also_from_a_job_that_failed_and_never_outside_the_folder(cluster: Cluster) -> None:
    ended, job = run_to_the_end(cluster, "failed", "--outputs", "results")
    assert (Path("results") / "model" / "weights.bin").read_text() == "weights"
    assert not Path("../evil").exists()
    assert f"1 files of {job.id} are in results." in ended.stderr


def test_json_on_standard_output_is_the_state(cluster: Cluster) -> None:
    ended, job = run_to_the_end(cluster, "succeeded", "--json")
    shown = json.loads(ended.stdout)
    assert (shown["status"], shown["job"]["id"]) == ("succeeded", job.id)


def test_a_dry_run_shows_what_each_node_executes_and_starts_nothing(cluster: Cluster) -> None:
    ended = run("run", *TWO, "--dry-run", "--env", "A=b c", "--setup", "pip list", "train.py", "--", "--epochs", "3")
    assert ended.exit_code == ExitCode.OK
    assert ended.stdout.splitlines()[-3:-1] == ["export A='b c'", "pip list"]
    assert ended.stdout.endswith("train.py --epochs 3\n")
    assert cluster.jobs.current() is None


def test_a_file_holds_the_options_and_options_come_before_it(cluster: Cluster) -> None:
    Path("job.toml").write_text('script = "train.py"\nretries = 7\nnodes = 2\n')
    shown = json.loads(run("run", *TWO, "--json", "--dry-run", "--nodes", "1", "job.toml").stdout)
    assert (shown["retries"], shown["nodes"]) == (7, 1)
    assert cluster.jobs.current() is None


def test_mistakes_are_reported_all_at_once_by_the_names_that_were_given() -> None:
    ended = run("run", *TWO, "--nodes", "none", "--hang-minutes", "0", "no.py")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert all(f"{key}: got" in ended.stderr for key in ("SCRIPT", "--nodes", "--hang-minutes"))


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (None, "There is no stack TrnClusterStack in us-west-2: `trn deploy` makes it."),
        (BOOTING, "not all nodes are proven"),
        (DeployedNodes(wanted=0, instances=(), records={}, roster=PROVEN.roster), "`trn run --wake` wakes it"),
    ],
    ids=["no cluster", "booting", "asleep"],
)
def test_without_proven_nodes_nothing_is_started(cluster: Cluster, nodes: DeployedNodes | None, said: str) -> None:
    cluster.nodes = nodes
    ended = run("run", *TWO, "train.py")
    assert ended.exit_code == ExitCode.NOT_READY
    assert said in ended.stderr
    assert cluster.jobs.current() is None


def test_a_second_job_is_refused_with_the_name_of_the_first(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    ended = run("run", *TWO, "train.py")
    assert ended.exit_code == ExitCode.NOT_READY
    assert f"{JOB.id} runs on this cluster" in ended.stderr
    cluster.writes.end("failed")
    assert run("run", *TWO, "--detach", "train.py").exit_code == ExitCode.OK


def test_a_job_resumes_only_what_has_a_whole_checkpoint(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.writes.end("interrupted")
    resumed = ("run", *TWO, "--detach", "--resume", JOB.id, "train.py")
    ended = run(*resumed)
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "has no whole checkpoint" in ended.stderr
    cluster.writes.put("checkpoints/step-10.json", {})
    assert run(*resumed).exit_code == ExitCode.OK
    current = cluster.jobs.current()
    assert current
    assert current.job.resume_from == JOB.id


def test_ctrl_c_leaves_the_job_running_and_says_how_to_come_back(cluster: Cluster) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    cluster.while_paused = interrupt
    ended = run("run", *TWO, "train.py")
    assert ended.exit_code == ExitCode.COULD_NOT_TELL
    current = cluster.jobs.current()
    assert current
    assert f"trn logs {current.job.id} --follow" in ended.stderr


def test_a_checkpoint_of_another_world_size_is_refused_before_anything_is_uploaded(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.writes.end("interrupted")
    cluster.writes.put("checkpoints/step-10.json", {"world_size": 4})
    ended = run("run", *TWO, "--detach", "--resume", JOB.id, "train.py")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "whose checkpoint step-10 was saved by 4 processes" in ended.stderr
    assert "a checkpoint of 64 processes, as many as this job has" in ended.stderr
    assert cluster.jobs.job_ids() == [JOB.id]


def test_what_s3_refuses_is_one_sentence(cluster: Cluster) -> None:
    cluster.jobs.bucket = "no-such-bucket"
    ended = run("run", *TWO, "train.py")
    assert ended.exit_code == ExitCode.COULD_NOT_TELL
    assert ended.stderr.startswith("Nothing was started: AWS answered NoSuchBucket")


def test_a_job_file_that_cannot_be_read_is_refused(cluster: Cluster) -> None:
    Path("job.toml").write_bytes(b"\xff")
    ended = run("run", *TWO, "job.toml")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "it cannot be read: 'utf-8'" in ended.stderr
    assert cluster.jobs.current() is None


def test_secrets_and_inputs_are_shown_by_name_in_a_dry_run_and_given_to_the_nodes(cluster: Cluster) -> None:
    arn = "arn:aws:ssm:us-west-2:123456789012:parameter/token"
    Path("words").write_text("a b")
    given = ("-c", f"trn:job_secrets={arn}", "--secret", f"T={arn}", "--input", "words=words")
    shown = run("run", *TWO, "--dry-run", *given, "train.py").stdout
    assert f"# T is the value of {arn}" in shown
    assert "# $TRN_INPUT_DIR/words is inputs/words of the job" in shown
    ended, job = run_to_the_end(cluster, "succeeded", *given)
    assert ended.exit_code == ExitCode.OK, ended.output
    assert (job.secrets, job.inputs) == ({"T": arn}, {"words": "inputs/words"})
    assert cluster.jobs.files(job.id, "inputs") == {"inputs/words": 3}


@pytest.mark.usefixtures("cluster")
def test_what_the_nodes_may_not_reach_is_refused_before_anything_is_asked() -> None:
    ended = run("run", *TWO, "--input", "data=s3://other/data/", "train.py")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "add its folder to trn:job_inputs and deploy" in ended.stderr


# Copies


def test_what_a_job_left_is_copied_also_while_the_cluster_sleeps(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.writes.put("outputs/model/weights.bin", "weights")
    for wanted, target in (("outputs", "all"), ("outputs/model/weights.bin", "one")):
        ended = run("cp", *TWO, f"{JOB.id}:{wanted}", target)
        assert ended.exit_code == ExitCode.OK, ended.output
    assert [Path(path).read_text() for path in ("all/model/weights.bin", "one")] == ["weights", "weights"]
    missing = run("cp", *TWO, f"{JOB.id}:models", ".")
    assert missing.exit_code == ExitCode.NOT_READY
    assert f"There is no models in {JOB.id}; it has: job.json, outputs, source.tar.gz." in missing.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("train.py", "there"), "a path of this machine, and WHERE:PATH"),
        (("0:/a", "1:/b"), "a path of this machine, and WHERE:PATH"),
        (("none.bin", "all:/opt/"), "a file or directory that exists"),
        (("train.py", f"{JOB.id}:inputs"), "trn run --input NAME=PATH"),
        (("train.py", "7:/opt/"), "all, 0 to 1"),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_a_copy_that_cannot_be_is_refused(arguments: tuple[str, str], said: str) -> None:
    ended = run("cp", *TWO, *arguments)
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert said in ended.stderr


def test_a_copy_from_a_node_is_a_job_whose_output_is_fetched(cluster: Cluster) -> None:
    def nodes_work() -> None:
        current = cluster.jobs.current()
        assert current
        writes = replace(cluster.writes, job=current.job)
        writes.put("outputs/node-1/syslog", "of node 1")
        writes.end("succeeded")

    cluster.while_paused = nodes_work
    ended = run("cp", *TWO, "1:/var/log/syslog", ".")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert Path("syslog").read_text() == "of node 1"
    current = cluster.jobs.current()
    assert current
    assert current.job.command.startswith("[ $TRN_NODE_RANK = 1 ] || exit 0; ")


# Shells


@pytest.fixture
def aws_cli(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the PATH with stand-ins of what a session needs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("aws", "session-manager-plugin"):
        (folder / name).write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/{name}.arguments\nexit 7\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))

    class Nodes:
        def __init__(self, _region: str) -> None: ...

        def nodes(self, _stack: str) -> DeployedNodes | None:
            return cluster.nodes

    monkeypatch.setattr("trainium_cli.shell_command.AwsNodes", Nodes)
    return folder


@pytest.mark.parametrize(("node", "meant"), [((), A), (("1",), B), ((B,), B)])
def test_a_shell_is_a_session_with_the_node_and_its_exit_code(
    aws_cli: Path, node: tuple[str, ...], meant: str, tmp_path: Path
) -> None:
    assert run("shell", *TWO, *node).exit_code == 7
    arguments = (tmp_path / "aws.arguments").read_text().splitlines()
    assert (arguments[:2], arguments[-1]) == (["ssm", "start-session"], meant)
    assert "command=sudo -iu $(id -nu 1000)" in arguments
    assert aws_cli.exists()


@pytest.mark.usefixtures("aws_cli")
def test_a_shell_and_a_copy_need_no_cdk_json(cluster: Cluster, clusters: FakeLocating) -> None:
    clusters.stacks = [ClusterStack(name="Training", cluster="web", status="CREATE_COMPLETE", has_nodes=True)]
    assert cluster.jobs.submit(JOB, b"", over=None)
    named = ("--region", "us-west-2", "--cluster", "web")
    assert run("shell", *named).exit_code == 7
    assert run("cp", *named, f"{JOB.id}:source.tar.gz", "fetched").exit_code == ExitCode.OK
    assert Path("fetched").exists()


@pytest.mark.parametrize("program", ["aws", "session-manager-plugin"])
def test_a_program_that_a_session_needs_is_named_when_it_is_missing(aws_cli: Path, program: str) -> None:
    (aws_cli / program).unlink()
    ended = run("shell", *TWO)
    assert ended.exit_code == ExitCode.NOT_READY
    assert f"There is no {program} on the PATH: install the " in ended.stderr


@pytest.mark.usefixtures("aws_cli")
def test_a_node_that_is_not_there_is_refused_with_those_that_are() -> None:
    ended = run("shell", *TWO, "i-0aaaaaaaaaaaaaaab")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert f"nearest: {A}" in ended.stderr


@pytest.mark.usefixtures("aws_cli")
def test_without_a_way_in_no_shell_is_promised() -> None:
    ended = run("shell", *TWO, "-c", "trn:egress=none")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "With trn:egress=none nodes reach S3 alone" in ended.stderr


def test_jobs_are_listed_and_one_is_shown_with_where_its_time_went(cluster: Cluster) -> None:
    assert "No job has been started" in run("jobs", *TWO).stdout
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.writes.start()
    cluster.writes.node(0, "running", phases={"first_step": 75})
    assert f"{JOB.id}  starting" in run("jobs", *TWO).stdout
    shown = run("jobs", *TWO, JOB.id).stdout
    assert "first step" in shown
    assert "75 s" in shown
    assert run("jobs", *TWO, "train-2026").exit_code == ExitCode.NOT_READY


def test_logs_of_one_rank_are_those_of_its_node(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.writes.start()
    cluster.writes.log(1, "[rank 3] of three\n", node=1)
    assert run("logs", *TWO, "--rank", "3").stdout == "[rank 3] of three\n"
    assert json.loads(run("logs", *TWO, "--rank", "3", "--json").stdout)[0]["text"] == "of three"
    assert "allowed: 0 to 3" in run("logs", *TWO, "--rank", "4").stderr


def test_stop_asks_the_nodes_and_waits_for_the_end(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.while_paused = lambda: cluster.writes.end("stopped")
    ended = run("stop", *TWO)
    assert ended.exit_code == ExitCode.OK
    assert ended.stdout == f"{JOB.id} is over: stopped.\n"
    assert run("stop", *TWO).exit_code == ExitCode.OK
