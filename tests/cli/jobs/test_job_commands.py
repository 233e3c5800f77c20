"""`trn run`, `jobs`, `logs` and `stop` against S3 of moto, with nodes that write real records."""

import hashlib
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.cli.cluster.test_nodes_command import BOOTING, VERIFIED
from tests.cli.jobs.cluster_with_jobs import TWO, Cluster
from tests.cli.running import run
from tests.core.job_bucket import JOB
from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation
from trainium_cli.jobs import run_command
from trainium_core.nodes.report import DeployedNodes
from trainium_wire.job import Job
from trn_job.command import variables

CACHE_USE = {
    "stack": "xla",
    "place": "neuronx-cc-2.21/trn2-lnc2/xla/world-64",
    "hits": 40,
    "misses": 3,
    "compile_seconds": 90,
    "reasons": {"other flags": 2, "first time": 1},
    "fetched": 40,
    "fetched_bytes": 480 * 1024**2,
    "stored": "many",
    "warnings": None,
}
"""As a node may write it, with null and invalid values."""


def run_to_the_end(
    cluster: Cluster, result: str, *arguments: str, script: str = "train.py", **more: Any
) -> tuple[Result, Job]:
    """Run `trn run` with nodes that start the job, print two lines and end with this result."""
    started: list[Job] = []

    def nodes_work() -> None:
        current = cluster.jobs.current()
        assert current
        started.append(current.job)
        job_nodes = replace(cluster.job_nodes, job=current.job)
        job_nodes.start()
        shown = {"progress": {"step": 12, "loss": 2.5}, "compile_caches": [CACHE_USE, "nonsense"]}
        job_nodes.node(0, "running", phases={"setup": 2, "running": 40}, **shown)
        job_nodes.node(1, "running")
        job_nodes.log(1, "[rank 0] hello\n[rank 1] hello too\n")
        job_nodes.put("outputs/model/weights.bin", "weights")
        job_nodes.put("outputs/../../evil", "no")
        job_nodes.end_attempt(result, **more)
        job_nodes.end(result, **more)

    cluster.while_paused = nodes_work
    ended = run("run", *TWO, *arguments, script)
    return ended, started[0]


def test_run_starts_and_follows_job_and_exits_with_its_result(cluster: Cluster) -> None:
    ended, job = run_to_the_end(cluster, "succeeded", "--env", "A=b", "--name", "first")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert job.id.startswith("first-20")
    assert (job.nodes, job.processes_per_node, job.environment) == (2, 32, {"A": "b"})
    assert job.source_sha256 == hashlib.sha256(cluster.job_nodes.source(job)).hexdigest()
    assert "hello\n" in ended.stdout
    assert "hello too" not in ended.stdout
    assert "step 12, loss 2.5" in ended.stdout
    shown = " ".join(ended.stdout.split())
    assert "xla: 40 hits, 3 misses (2 other flags, 1 first time), 90 s compiled, 480 MiB fetched" in shown
    assert "█" in ended.stdout
    assert f"Submitted {job.id}." in ended.stderr


def test_outputs_of_a_failed_job_stay_inside_the_folder(cluster: Cluster) -> None:
    ended, job = run_to_the_end(cluster, "failed", "--outputs", "results")
    assert (Path("results") / job.id / "model" / "weights.bin").read_text() == "weights"
    assert not any(Path(folder, "evil").exists() for folder in ("results", ".", ".."))
    assert f"1 file is in results/{job.id}." in ended.stderr
    again = run("jobs", *TWO, job.id, "--outputs", "results")
    assert f"results/{job.id} exists" in again.stderr


def test_incomplete_checkpoints_of_a_job_that_succeeded_are_a_note(cluster: Cluster) -> None:
    ended, job = run_to_the_end(cluster, "succeeded", reason="checkpoints that are not complete: step-1")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert ended.stdout.endswith("\nNote: checkpoints that are not complete: step-1\n")
    assert run("jobs", *TWO, job.id).stdout.endswith("\nNote: checkpoints that are not complete: step-1\n")


def test_lost_results_have_their_own_exit_code(cluster: Cluster) -> None:
    ended, job = run_to_the_end(cluster, "results-lost", reason="node 0 (i-0): what did not reach S3 stays")
    assert ended.exit_code == ExitCode.RESULTS_LOST, ended.output
    assert ended.stdout.endswith("\nReason: node 0 (i-0): what did not reach S3 stays\n")
    logs = run("logs", *TWO, job.id, "--follow")
    assert logs.exit_code == ExitCode.RESULTS_LOST
    assert logs.stderr.endswith("results-lost\n\nReason: node 0 (i-0): what did not reach S3 stays\n")


@pytest.mark.parametrize(("result", "sleeps"), [("results-lost", False), ("succeeded", True), ("failed", True)])
def test_wake_leaves_nodes_with_lost_results_awake(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, result: str, sleeps: bool
) -> None:
    wanted: list[str] = []

    def switch(*arguments: Any, **_: Any) -> str:
        wanted.append(arguments[-1])
        return f"is {arguments[-1]}"

    monkeypatch.setattr(run_command, "switch", switch)
    ended, job = run_to_the_end(cluster, result, "--wake", "--yes")
    assert wanted == (["awake", "asleep"] if sleeps else ["awake"])
    assert (f"stays awake and is billed: unstored results of {job.id} are only on its nodes" in ended.stderr) != sleeps


@pytest.mark.usefixtures("cluster")
def test_unknown_job_to_resume_is_refused_before_wake(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: list[str] = []
    monkeypatch.setattr(run_command, "switch", lambda *arguments, **_: wanted.append(arguments[-1]))
    ended = run("run", *TWO, "--wake", "--yes", "--resume", "typo", "train.py")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "typo is not a job of this cluster" in ended.stderr
    assert wanted == []


def test_json_prints_the_state(cluster: Cluster) -> None:
    ended, job = run_to_the_end(cluster, "succeeded", "--json")
    shown = json.loads(ended.stdout)
    assert (shown["status"], shown["job"]["id"]) == ("succeeded", job.id)


def test_dry_run_shows_commands_and_starts_nothing(cluster: Cluster) -> None:
    ended = run("run", *TWO, "--dry-run", "--env", "A=b c", "--setup", "pip list", "train.py", "--", "--epochs", "3")
    assert ended.exit_code == ExitCode.OK
    assert ended.stdout.splitlines()[-3:-1] == ["export A='b c'", "pip list"]
    assert ended.stdout.endswith("train.py --epochs 3\n")
    assert cluster.jobs.current() is None


@pytest.mark.usefixtures("cluster")
def test_dry_run_names_stack_and_every_variable() -> None:
    shown = run("run", *TWO, "--dry-run", "--env", "A=b c", "train.py").stdout
    assert "activates the environment of the framework xla" in shown
    by_node = variables(
        spec_environment={"A": "b c"}, job="train", attempt=1, nodes=2, rank=0, head="10.0.0.1", place=Path("/place")
    )
    exported = dict(re.findall(r"^export (\w+)=(.*)$", shown, re.MULTILINE))
    described = set(re.findall(r"^# (\w+): .", shown, re.MULTILINE))
    assert {*exported, *described} == {*by_node, "TRN_RESUME_FROM"}
    assert exported == {name: shlex.quote(by_node[name]) for name in exported}


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (None, "Stack TrnClusterStack does not exist in us-west-2: `trn deploy` creates it."),
        (BOOTING, "not all nodes are verified"),
        (
            DeployedNodes(wanted=0, instances=(), records={}, membership=VERIFIED.membership),
            "`trn run --wake` wakes it",
        ),
    ],
    ids=["no cluster", "booting", "asleep"],
)
def test_job_without_verified_nodes_is_not_started(cluster: Cluster, nodes: DeployedNodes | None, message: str) -> None:
    cluster.nodes = nodes
    ended = run("run", *TWO, "train.py")
    assert ended.exit_code == ExitCode.NOT_READY
    assert message in ended.stderr
    assert cluster.jobs.current() is None


def test_second_job_is_refused_with_name_of_first(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    ended = run("run", *TWO, "train.py")
    assert ended.exit_code == ExitCode.NOT_READY
    assert f"{JOB.id} runs on this cluster" in ended.stderr
    cluster.job_nodes.end("failed")
    assert run("run", *TWO, "--detach", "train.py").exit_code == ExitCode.OK


def test_ctrl_c_leaves_job_running_and_prints_how_to_return(cluster: Cluster) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    cluster.while_paused = interrupt
    ended = run("run", *TWO, "train.py")
    assert ended.exit_code == ExitCode.INTERRUPTED
    current = cluster.jobs.current()
    assert current
    assert f"{current.job.id} keeps running, and is billed" in ended.stderr
    assert f"trn logs {current.job.id} --follow" in ended.stderr


def test_checkpoint_of_another_world_size_is_refused(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.job_nodes.end("interrupted")
    cluster.job_nodes.put("checkpoints/step-10.json", {"world_size": 4})
    ended = run("run", *TWO, "--detach", "--resume", JOB.id, "train.py")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "whose checkpoint step-10 was saved by 4 processes" in ended.stderr
    assert "a checkpoint of 64 processes, as many as this job has" in ended.stderr
    assert cluster.jobs.job_ids() == [JOB.id]


def test_secrets_and_inputs_reach_the_nodes(cluster: Cluster) -> None:
    arn = "arn:aws:ssm:us-west-2:123456789012:parameter/token"
    Path("words").write_text("a b")
    options = ("-c", f"trn:job_secrets={arn}", "--secret", f"T={arn}", "--input", "words=words")
    shown = run("run", *TWO, "--dry-run", *options, "train.py").stdout
    assert f"# T is the value of {arn}" in shown
    assert "# $TRN_INPUT_DIR/words is inputs/words of the job" in shown
    ended, job = run_to_the_end(cluster, "succeeded", *options)
    assert ended.exit_code == ExitCode.OK, ended.output
    assert (job.secrets, job.inputs) == ({"T": arn}, {"words": "inputs/words"})
    assert cluster.jobs.files(job.id, "inputs") == {"inputs/words": 3}


def test_jobs_lists_jobs_and_shows_the_time_of_one(cluster: Cluster) -> None:
    assert "No job has been started" in run("jobs", *TWO).stdout
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.job_nodes.start()
    cluster.job_nodes.node(0, "running", phases={"first_step": 75})
    assert f"{JOB.id}  starting" in run("jobs", *TWO).stdout
    shown = run("jobs", *TWO, JOB.id).stdout
    assert "first step" in shown
    assert "75 s" in shown
    record = [json.loads(line) for line in run("jobs", *TWO, JOB.id, "--record").stdout.splitlines()]
    assert [line["event"] for line in record] == ["submitted", "phase", "attempt", "phase"]
    assert record[-1]["usd"] > 0
    assert json.loads(run("jobs", *TWO, JOB.id, "--json").stdout)["record"] == record
    assert run("jobs", *TWO, "train-2026").exit_code == ExitCode.NOT_READY


def test_logs_of_rank_are_those_of_its_node(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.job_nodes.start()
    cluster.job_nodes.log(1, "[rank 3] of three\n", node=1)
    assert run("logs", *TWO, "--rank", "3").stdout == "[rank 3] of three\n"
    assert json.loads(run("logs", *TWO, "--rank", "3", "--json").stdout)[0]["text"] == "of three"
    assert "allowed: 0 to 3" in run("logs", *TWO, "--rank", "4").stderr


def test_logs_of_node_are_all_its_lines(cluster: Cluster) -> None:
    job = replace(JOB, has_ranks=False)
    assert cluster.jobs.submit(job, b"", over=None)
    cluster.job_nodes.start()
    cluster.job_nodes.log(1, "no rank\n[rank 3] of three\n", node=1)
    assert run("logs", *TWO, "--node", "1").stdout == "no rank\n[rank 3] of three\n"
    assert "--rank: the job is a command" in run("logs", *TWO, "--rank", "1").stderr
    assert "allowed: 0 to 1, without --rank" in run("logs", *TWO, "--node", "2").stderr
    assert "processes each" not in run("jobs", *TWO, job.id).stdout


def test_checkpoint_of_another_number_of_nodes_is_refused(cluster: Cluster) -> None:
    cluster.jobs.submit(replace(JOB, has_ranks=False), b"", over=None)
    cluster.job_nodes.put("checkpoints/step-10.json", {"world_size": None, "nodes": 4})
    cluster.job_nodes.end("failed")
    ended = run("run", *TWO, "--resume", JOB.id, "train.py")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "whose checkpoint step-10 was saved on 4 nodes" in ended.stderr
    assert "a checkpoint of 2 nodes, as many as this job has" in ended.stderr


def test_stop_waits_for_the_end_of_the_job(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.while_paused = lambda: cluster.job_nodes.end("stopped")
    ended = run("stop", *TWO)
    assert ended.exit_code == ExitCode.OK
    assert ended.stdout == f"{JOB.id} has ended: stopped.\n"
    assert run("stop", *TWO).exit_code == ExitCode.OK


def test_failed_job_shows_its_traceback_with_node_and_rank(cluster: Cluster) -> None:
    failure = {"reason": "ValueError: no", "traceback": "Traceback ...\nValueError: no", "node": 1, "rank": 33}
    ended, _ = run_to_the_end(cluster, "failed", **failure)
    assert ended.exit_code == ExitCode.NOT_READY
    assert "Traceback ...\nValueError: no\n" in ended.stdout
    assert "node 1, rank 33" in ended.stdout
    assert ended.stdout.endswith("\nReason: ValueError: no\n")
    assert ended.output.count("ValueError: no") == 2


def test_failed_job_is_explained_by_its_end(cluster: Cluster) -> None:
    reason = "rank 3 on node 0 (i-0): AssertionError: Torch not compiled with CUDA enabled"
    ended, job = run_to_the_end(cluster, "failed", reason=reason, node=0, rank=3)
    cause = "Cause:  the code requests CUDA or NCCL, which Trainium does not have.\nFix:    run `trn assess`"
    for one in (ended, run("jobs", *TWO, job.id), run("logs", *TWO, job.id)):
        assert f"\nReason: {reason}\n{cause}" in one.output
        assert one.output.count(reason) == 1


def test_failed_job_is_explained_by_the_log_of_its_node(cluster: Cluster) -> None:
    job_nodes = replace(cluster.job_nodes, job=JOB)
    assert cluster.jobs.submit(JOB, b"", over=None)
    job_nodes.start()
    job_nodes.log(1, "[rank 33] error: [NCC_EVRF029] Operation sort is not supported on trn2.\n", node=1)
    job_nodes.log(2, "[rank 33] ValueError: neuronx-cc failed with 70\n", node=1)
    failure: dict[str, Any] = {"reason": "rank 33: ValueError: neuronx-cc failed with 70", "node": 1, "rank": 33}
    job_nodes.end_attempt("failed", **failure)
    job_nodes.end("failed", **failure)
    ended = run("jobs", *TWO, JOB.id)
    assert "Cause:  the graph has an operator that the compiler does not support" in ended.stdout


@pytest.mark.parametrize("result", ["succeeded", "stopped", "failed"])
def test_job_without_known_error_has_no_explanation(cluster: Cluster, result: str) -> None:
    ended, _ = run_to_the_end(cluster, result, reason="ValueError: no")
    assert "Cause:" not in ended.output


OBSERVED = {
    "processes": 32,
    "stack": "xla",
    "fallbacks": {"aten::nonzero": 4, "aten::erfinv": 2},
    "compiled": 40,
    "compile_seconds": 90,
    "reasons": {"mark_step in parallel loader at step end": 39},
    "errors": {},
}


def does_not_reach_aws(_invocation: Invocation, _region: str) -> bool:
    return False


def test_observed_job_shows_counters_and_compares_them_with_code(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_nodes = replace(cluster.job_nodes, job=JOB)
    assert cluster.jobs.submit(JOB, b"", over=None)
    job_nodes.start()
    job_nodes.node(0, "succeeded", observed=OBSERVED)
    job_nodes.end_attempt("succeeded")
    job_nodes.end("succeeded")
    shown = " ".join(run("jobs", *TWO, JOB.id).stdout.split())
    assert "40 graphs compiled in" in shown
    assert "on the CPU: aten::nonzero 4, aten::erfinv 2" in shown
    Path("model.py").write_text("import torch\n\ndef rows(x):\n    return torch.nonzero(x)\n")
    compared = run("assess", "model.py", "--observed", JOB.id, *TWO).stdout
    assert "Predicted and seen:\n  S03" in compared
    assert "Seen and not predicted:\n  aten::erfinv on the CPU" in compared
    assert "ran on a stand-in" not in compared
    monkeypatch.setattr(Invocation, "reaches_aws", does_not_reach_aws)
    assert "ran on a stand-in" in run("assess", "model.py", "--observed", JOB.id, *TWO).stdout
    as_json = run("assess", "model.py", "--observed", JOB.id, "--format", "json", *TWO).stdout
    assert json.loads(as_json)["observed"]["side"] == "lab"


def test_job_without_counters_is_not_compared(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    ended = run("assess", "train.py", "--observed", JOB.id, *TWO)
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert f"{JOB.id} has no counters: start it with `trn run --observe`." in ended.stderr


def test_observe_is_off_unless_file_or_option_enables_it(cluster: Cluster) -> None:
    Path("job.toml").write_text('script = "train.py"\nobserve = true\n')
    for options, observes in ((("train.py",), False), (("--observe", "train.py"), True), (("job.toml",), True)):
        ended = run("run", *TWO, "--dry-run", "--json", *options)
        assert json.loads(ended.stdout)["observe"] is observes
    assert "PYTHONPATH begins with the observer" in run("run", *TWO, "--dry-run", "job.toml").stdout
    assert cluster.jobs.current() is None


@pytest.mark.parametrize("command", ["logs", "stop", "jobs"])
def test_job_that_lost_to_another_submission_does_not_exist(cluster: Cluster, command: str) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    loser = replace(JOB, id="lost-20261122-190501")
    assert not cluster.jobs.submit(loser, b"", over=None)
    ended = run(command, loser.id, *TWO)
    assert ended.exit_code == ExitCode.NOT_READY
    assert ended.stderr.startswith(f"Job {loser.id} does not exist; nearest: {JOB.id}. ")


@pytest.mark.usefixtures("cluster")
def test_problems_are_named_by_the_given_options() -> None:
    ended = run("run", *TWO, "--input", "data=s3://other/data/", "--nodes", "3", "train.py")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "add its folder to trn:job_inputs and deploy" in ended.stderr
    assert all(f"  {option}: got" in ended.stderr for option in ("--input", "--nodes"))
