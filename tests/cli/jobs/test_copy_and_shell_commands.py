"""`trn cp` and `trn shell` against S3 of moto, with nodes that write real records."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.cluster.test_nodes_command import VERIFIED, A, B
from tests.cli.conftest import FakeLocating
from tests.cli.jobs.cluster_with_jobs import TWO, Cluster
from tests.cli.running import run
from tests.core.aws_stubs import stack_record
from tests.core.job_bucket import JOB
from tests.nasty_names import NASTY_NAMES
from trainium_cli.exit_codes import ExitCode
from trainium_core.nodes.report import DeployedNodes

# Copies


def test_files_of_a_job_are_copied_from_s3(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.job_nodes.put("outputs/model/weights.bin", "weights")
    cluster.job_nodes.put("outputs/v1./note", "weights")
    for wanted, target in (("outputs", "all"), ("outputs/model/weights.bin", "one"), ("./outputs/v1./", "dot")):
        ended = run("cp", *TWO, f"{JOB.id}:{wanted}", target)
        assert ended.exit_code == ExitCode.OK, ended.output
    assert {Path(path).read_text() for path in ("all/model/weights.bin", "one", "dot/note")} == {"weights"}


def test_copied_files_keep_their_names_and_links_become_copies(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    for name in NASTY_NAMES:
        cluster.job_nodes.put(f"outputs/{name}", name)
    cluster.job_nodes.put("outputs/node-1/runs/7/model", "of node 1")
    cluster.job_nodes.put("attempts/outputs/1.json", {"links": {"latest": "runs/7"}})
    assert run("cp", *TWO, f"{JOB.id}:outputs", "all").exit_code == ExitCode.OK
    assert {name: Path("all", name).read_bytes().decode() for name in NASTY_NAMES} == {
        name: name for name in NASTY_NAMES
    }
    for name in NASTY_NAMES:
        assert run("cp", *TWO, "--overwrite", f"{JOB.id}:outputs/{name}", "./one").exit_code == ExitCode.OK
        assert Path("one").read_bytes().decode() == name
    assert Path("all/node-1/latest/model").read_text() == "of node 1"
    assert run("cp", *TWO, f"{JOB.id}:outputs/node-1/latest", "latest").exit_code == ExitCode.OK
    assert Path("latest/model").read_text() == "of node 1"


def test_checkpoints_are_named_if_a_job_has_no_outputs(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    none = f"There are no outputs of {JOB.id} to fetch."
    assert run("jobs", *TWO, JOB.id, "--outputs", "results").stderr.endswith(f"{none}\n")
    cluster.job_nodes.put("checkpoints/step-1.json", {"parts": ["1-0-1"]})
    cluster.job_nodes.put("checkpoints/step-1/1-0-1.json", {"files": {"step-1/model": {"size": 1}}})
    cluster.job_nodes.put("checkpoints/step-1/1-0-1/step-1/model", "x")
    hint = f" To fetch its checkpoints: `trn cp {JOB.id}:checkpoints DIR`."
    assert run("jobs", *TWO, JOB.id, "--outputs", "results").stderr.endswith(f"{none}{hint}\n")


def test_incomplete_checkpoints_are_named_if_a_job_has_no_complete_ones(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.job_nodes.put("attempts/incomplete-checkpoints.json", {"parts": {"step-1": ["1-0-1"]}})
    cluster.job_nodes.put("checkpoints/step-1/1-0-1.json", {"files": {"step-1/model": {"size": 1}}})
    cluster.job_nodes.put("checkpoints/step-1/1-0-1/step-1/model", "x")
    missing = run("cp", *TWO, f"{JOB.id}:checkpoints", "all")
    has = "attempts, incomplete-checkpoints, job.json, source.tar.gz"
    assert f"{JOB.id} has no checkpoints; it has: {has}." in missing.stderr
    assert run("cp", *TWO, f"{JOB.id}:incomplete-checkpoints", "all").exit_code == ExitCode.OK
    assert Path("all/node-0/step-1/model").read_text() == "x"


def test_missing_and_unsafe_files_of_a_job_are_not_copied(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.job_nodes.put("outputs/model/weights.bin", "weights")
    missing = run("cp", *TWO, f"{JOB.id}:models", ".")
    assert missing.exit_code == ExitCode.NOT_READY
    assert f"{JOB.id} has no models; it has: job.json, outputs, source.tar.gz." in missing.stderr
    cluster.job_nodes.put("outputs/up/../../../evil", "theirs")
    outside = run("cp", *TWO, f"{JOB.id}:outputs/up", ".")
    assert outside.exit_code == ExitCode.NOT_READY
    assert "Not fetched: outputs/up/../../../evil, which is not a path inside up." in outside.stderr
    assert "Nothing was copied to up." in outside.stderr
    assert "has no" not in outside.stderr


def test_copied_names_do_not_overwrite_files(cluster: Cluster) -> None:
    """Nodes choose the names of files below a path. A new cdk.json here would be executed by the CDK CLI."""
    assert cluster.jobs.submit(JOB, b"", over=None)
    ours = '{"context": {}}'
    Path("cdk.json").write_text(ours)
    for name in ("syslog", "syslog/cdk.json", "cdk.json", "logs/.git/hooks/post-checkout"):
        cluster.job_nodes.put(f"outputs/{name}", "theirs")
    assert run("cp", *TWO, f"{JOB.id}:outputs/syslog", ".").exit_code == ExitCode.OK
    assert run("cp", *TWO, f"{JOB.id}:outputs/logs", ".").exit_code == ExitCode.OK
    refused = run("cp", *TWO, f"{JOB.id}:outputs/cdk.json", ".")
    assert refused.exit_code == ExitCode.NOT_READY
    assert "cdk.json exists: remove it or specify another path, or pass --overwrite" in refused.stderr
    assert Path("cdk.json").read_text() == ours
    assert Path("syslog").read_text() == Path("logs/.git/hooks/post-checkout").read_text() == "theirs"
    assert not Path(".git").exists()
    assert run("cp", *TWO, f"{JOB.id}:outputs/cdk.json", ".", "--overwrite").exit_code == ExitCode.OK
    assert Path("cdk.json").read_text() == "theirs"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train.py", "there"), "a path on this machine, and WHERE:PATH"),
        (("train.py", f"{JOB.id}:inputs"), "trn run --input NAME=PATH"),
        (("train.py", "7:/opt/"), "all, 0 to 1"),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_invalid_copy_is_refused(arguments: tuple[str, str], message: str) -> None:
    ended = run("cp", *TWO, *arguments)
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert message in ended.stderr


def test_copy_from_node_runs_a_job_and_downloads_its_output(cluster: Cluster) -> None:
    def nodes_work() -> None:
        current = cluster.jobs.current()
        assert current
        job_nodes = replace(cluster.job_nodes, job=current.job)
        job_nodes.put("outputs/node-1/syslog", "of node 1")
        job_nodes.end("succeeded")

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
    """A folder in place of the PATH. Its AWS CLI and Session Manager plugin record arguments and exit with 7."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("aws", "session-manager-plugin"):
        (folder / name).write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/{name}.arguments\nexit 7\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))

    class Nodes:
        def __init__(self, _region: str, **_: object) -> None: ...

        def nodes(self, _stack: str) -> DeployedNodes | None:
            return cluster.nodes

    monkeypatch.setattr("trainium_cli.cluster.shell_command.AwsNodes", Nodes)
    return folder


@pytest.mark.parametrize(("node", "instance_id"), [((), A), (("1",), B), ((B,), B)])
def test_shell_opens_session_and_returns_its_exit_code(
    aws_cli: Path, node: tuple[str, ...], instance_id: str, tmp_path: Path
) -> None:
    assert run("shell", *TWO, *node).exit_code == 7
    arguments = (tmp_path / "aws.arguments").read_text().splitlines()
    assert (arguments[:2], arguments[-1]) == (["ssm", "start-session"], instance_id)
    assert "command=sudo -iu $(id -nu 1000)" in arguments
    assert aws_cli.exists()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.mark.usefixtures("aws_cli")
def test_shell_forwards_a_local_port_to_a_node(tmp_path: Path) -> None:
    local = free_port()
    ended = run("shell", *TWO, "1", "--forward", f"{local}:6006")
    assert ended.exit_code == 7
    assert ended.stderr.endswith(f"localhost:{local} is port 6006 of {B}. Ctrl-C ends it.\n")
    arguments = (tmp_path / "aws.arguments").read_text().splitlines()
    assert {"AWS-StartPortForwardingSession", f"portNumber=6006,localPortNumber={local}"} <= {*arguments}
    assert arguments[-1] == B


@pytest.mark.usefixtures("aws_cli")
def test_local_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        local = listener.getsockname()[1]
        ended = run("shell", *TWO, "--forward", str(local))
    assert ended.exit_code == ExitCode.NOT_READY
    assert f"Port {local} is in use on this machine: specify another one with --forward LOCAL:{local}" in ended.stderr
    assert not (tmp_path / "aws.arguments").exists()


@pytest.mark.parametrize("given", ["web", "0", "70000", "1:2:3", ":", "6006:"])
def test_invalid_ports_are_refused(given: str) -> None:
    ended = run("shell", *TWO, "--forward", given)
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "allowed: a port from 1 to 65535, such as 6006, or two, such as 16006:6006" in ended.stderr


@pytest.mark.usefixtures("aws_cli")
def test_rank_without_a_running_node_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    cluster.nodes = replace(VERIFIED, instances=VERIFIED.instances[1:])
    refused = run("shell", *TWO, "0")
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert f"allowed: 1, {B}" in refused.stderr
    for node in (("1",), ()):
        assert run("shell", *TWO, *node).exit_code == 7
        assert (tmp_path / "aws.arguments").read_text().splitlines()[-1] == B


@pytest.mark.usefixtures("aws_cli")
def test_shell_and_copy_need_no_cdk_json(cluster: Cluster, clusters: FakeLocating) -> None:
    clusters.recorded = [stack_record("Training", cluster="web")]
    assert cluster.jobs.submit(JOB, b"", over=None)
    named = ("--region", "us-west-2", "--cluster", "web")
    assert run("shell", *named).exit_code == 7
    assert run("cp", *named, f"{JOB.id}:source.tar.gz", "fetched").exit_code == ExitCode.OK
    assert Path("fetched").exists()


@pytest.mark.parametrize("program", ["aws", "session-manager-plugin"])
def test_missing_session_program_is_named(aws_cli: Path, program: str) -> None:
    (aws_cli / program).unlink()
    ended = run("shell", *TWO)
    assert ended.exit_code == ExitCode.NOT_READY
    assert f"{program} is not on the PATH: install the " in ended.stderr


@pytest.mark.usefixtures("aws_cli")
def test_shell_without_egress_is_refused() -> None:
    ended = run("shell", *TWO, "-c", "trn:egress=none")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "With trn:egress=none, nodes reach only S3" in ended.stderr
