"""`trn bench` against S3 of moto, where the tests write the files of nodes."""

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.cli.evidence.bench_jobs import FILE, JOB_FILE, record, work
from tests.cli.jobs.cluster_with_jobs import TWO, Cluster
from tests.cli.running import run
from tests.core.job_bucket import BUCKET, NODES, NOON, REGION
from trainium_cli.evidence import bench_runs
from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation
from trainium_core.engines.ec2.aws_jobs import ClusterJobs
from trainium_core.jobs.engine import PriceBasis
from trainium_core.jobs.progress import JobState
from trainium_runtime.errors import RequestRefusedError
from trainium_wire.job import Job
from trainium_wire.node_record import CheckRecord, NodeRecord


def test_three_jobs_with_their_seeds_give_a_record(cluster: Cluster, jobs: list[Job]) -> None:
    driver = CheckRecord(name="driver", expected="", found="driver 2.24.7, runtime 2.28.19", ok=True)
    node = NodeRecord(NODES[0], "verified", "2026-11-24T12:00:00Z", checks=(driver,))
    cluster.job_nodes.s3.put_object(Bucket=BUCKET, Key=f"nodes/{NODES[0]}.json", Body=node.to_json())
    ended = run("bench", *TWO, "bench.toml")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert [job.command.rpartition(" ")[2] for job in jobs] == ["11", "12", "13"]
    written = record()
    assert [measured.seed for measured in written.runs] == [11, 12, 13]
    assert written.metrics["tokens_per_second"].value == 200
    assert written.runs[0].phases["compile_cold"] == 20
    assert (written.hardware.nodes, written.hardware.used, written.gates[0].state) == (2, 32, "met")
    assert "tokens_per_second" in ended.stdout
    assert (written.side, written.software.driver) == ("trainium", "2.24.7")


def does_not_reach_aws(_invocation: Invocation, _region: str) -> bool:
    return False


@pytest.mark.usefixtures("jobs")
def test_numbers_of_an_emulator_are_lab_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Invocation, "reaches_aws", does_not_reach_aws)
    assert run("bench", *TWO, "bench.toml").exit_code == ExitCode.OK
    written = record()
    assert (written.side, written.hardware.type, written.hardware.usd_hour) == ("lab", "lab:trn1.32xlarge", None)
    assert written.metrics["usd_per_million_tokens_paid"].why_null == "stand-ins have no price"


@pytest.mark.usefixtures("jobs")
def test_price_that_is_not_paid_meets_no_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    def prepaid(_self: object, _state: JobState) -> PriceBasis:
        return PriceBasis(purchase="training plan", includes="nothing", not_paid="the training plan is prepaid")

    monkeypatch.setattr(ClusterJobs, "price_basis", prepaid)
    Path("bench.toml").write_text(f'{FILE}usd_per_million_tokens_paid = "<= 1000"\n')
    assert run("bench", *TWO, "bench.toml").exit_code == ExitCode.UNKNOWN
    written = record()
    hardware, metrics = written.hardware, written.metrics
    assert (hardware.purchase, hardware.usd_hour, hardware.price_source) == ("training plan", None, None)
    assert "the training plan is prepaid" in str(metrics["usd_per_million_tokens_paid"].why_null)
    assert "prepaid" not in str(metrics["usd_per_million_tokens_list"].why_null)
    assert [gate.state for gate in written.gates] == ["met", "not measured"]


def test_command_after_a_failed_run_continues_with_the_missing_runs(cluster: Cluster, jobs: list[Job]) -> None:
    working = cluster.while_paused

    def fail_third() -> None:
        if len(jobs) < 2:
            working()
        else:
            work(cluster, jobs, "failed")

    cluster.while_paused = fail_third
    ended = run("bench", *TWO, "bench.toml")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "\nReason: a reason\n" in ended.stderr
    assert "did not succeed. No results were written." in ended.stderr
    assert not Path("evidence/lm-trainium.json").exists()
    reported = run("report", "evidence")
    assert reported.exit_code == ExitCode.UNKNOWN
    failure = f"{jobs[2].id} (trainium, seed 13): the job did not succeed: a reason"
    assert failure in reported.stdout
    assert failure in Path("report.html").read_text()
    cluster.while_paused = working
    assert run("bench", *TWO, "bench.toml").exit_code == ExitCode.OK
    assert [job.command.rpartition(" ")[2] for job in jobs] == ["11", "12", "13", "13"]
    assert [(run.job, run.excluded) for run in record().runs if run.excluded] == [
        (jobs[2].id, "seed 13: the job did not succeed: a reason")
    ]
    assert len(record().runs) == 4
    assert record().metrics["tokens_per_second"].n == 3


def test_gates_that_were_changed_after_the_first_run_are_refused(jobs: list[Job]) -> None:
    assert run("bench", *TWO, "bench.toml").exit_code == ExitCode.OK
    Path("bench.toml").write_text(FILE.replace(">= 100", ">= 1"))
    ended = run("bench", *TWO, "bench.toml")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "bench.toml was changed after the first run" in ended.stderr
    assert len(jobs) == 3


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ((">= 100", ">= 1000"), ExitCode.NOT_READY),
        (("steps = 3", "steps = 30"), ExitCode.UNKNOWN),
        (('[gates]\ntokens_per_second = ">= 100"', ""), ExitCode.OK),
    ],
)
def test_exit_code_says_whether_the_gates_are_met(change: tuple[str, str], code: ExitCode) -> None:
    Path("bench.toml").write_text(FILE.replace(*change))
    assert run("bench", *TWO, "bench.toml").exit_code == code


@pytest.mark.usefixtures("jobs")
def test_runs_that_do_not_count_are_no_success_without_gates() -> None:
    Path("bench.toml").write_text(FILE.partition("[gates]")[0].replace("steps = 3", "steps = 30"))
    ended = run("bench", *TWO, "bench.toml")
    assert (ended.exit_code, "0 of 3 runs count" in ended.stdout) == (ExitCode.UNKNOWN, True)


@pytest.mark.usefixtures("jobs")
def test_results_of_another_tool_are_imported() -> None:
    Path("bench.toml").write_text(FILE.replace("tuned = true", 'tuned = true\nresults = ["vllm.json"]'))
    ended = run("bench", *TWO, "--json", "bench.toml")
    assert ended.exit_code == ExitCode.OK, ended.output
    metric = record().metrics["requests_per_second"]
    assert (metric.unit, metric.n, metric.origin, metric.source) == ("requests/s", 3, "imported", "vllm bench serve")
    [printed] = json.loads(ended.stdout)["records"]
    assert printed["metrics"]["requests_per_second"]["value"] == metric.value


RECOVERY = FILE.replace("tuned = true", "tuned = true\nrecovery = true")


def client(service: str) -> Any:
    return boto3.client(service, REGION)


@pytest.fixture
def node(cluster: Cluster, jobs: list[Job]) -> str:
    """An EC2 instance that the fourth job runs on. After its termination the job is restarted on another node."""
    ec2 = client("ec2")
    image = "ami-0123456789abcdef0"
    instance: str = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    state = {"steps": 0, "over": False}

    def work_or_lose() -> None:
        current = cluster.jobs.current()
        assert current is not None
        if len(jobs) < 3 or current.job.id == jobs[2].id:
            work(cluster, jobs)
            return
        writes = replace(cluster.job_nodes, job=current.job)
        if current.job.id != jobs[-1].id:
            jobs.append(current.job)
            nodes = [
                {"instance_id": instance_id, "address": "10.0.0.1"} for instance_id in ("i-0aaaaaaaaaaaaaaaa", instance)
            ]
            writes.put("attempts/1/start.json", {"attempt": 1, "at": NOON, "nodes": nodes})
            writes.node(0, "running", phases={"source": 1, "first_step": 1})
        state["steps"] += 1
        found: str = ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]["State"]["Name"]
        if found == "running":
            assert state["steps"] < 9, "the node was not terminated"
            writes.log(state["steps"], f"[rank 0] TRN step={state['steps']} loss=1 tokens=100 seconds=0.5\n")
            return
        if state["over"]:
            return
        assert state["steps"] == 3, "half of the 4 steps with the warm-up were done"
        state["over"] = True
        writes.end_attempt("node-lost", at="2100-01-01T00:00:00Z")
        writes.start(2, at="2100-01-01T00:01:00Z")
        writes.node(0, "ended", attempt=2, phases={"source": 1, "first_step": 2})
        writes.end_attempt("succeeded", attempt=2, at="2100-01-01T00:02:00Z")
        writes.end("succeeded", at="2100-01-01T00:02:00Z")

    cluster.while_paused = work_or_lose
    return instance


def test_recovery_is_measured_with_a_terminated_node(jobs: list[Job], node: str) -> None:
    Path("bench.toml").write_text(RECOVERY)
    ended = run("bench", *TWO, "--yes", "bench.toml")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert f"Terminated {node} of {jobs[3].id}." in ended.stderr
    metrics = record().metrics
    assert metrics["recovery_waited_seconds"].value == 60
    assert metrics["recovery_begun_seconds"].value == 3
    detected = metrics["recovery_detected_seconds"].value
    assert detected is not None
    assert metrics["recovery_seconds"].value == detected + 63
    assert len(record().runs) == 3
    assert run("bench", *TWO, "--yes", "bench.toml").exit_code == ExitCode.OK
    assert len(jobs) == 4


def test_refused_termination_leaves_the_job_running(
    jobs: list[Job], node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: object, instance_id: str) -> datetime:
        assert instance_id == node
        raise RequestRefusedError("not allowed: the permission ec2:TerminateInstances is missing")

    monkeypatch.setattr(bench_runs.AwsNodeControl, "terminate", refuse)
    Path("bench.toml").write_text(RECOVERY)
    ended = run("bench", *TWO, "--yes", "bench.toml")
    assert ended.exit_code == ExitCode.NOT_READY
    assert f"{jobs[3].id} keeps running. Its node {node} is not terminated: not allowed" in ended.stderr
    assert record().metrics["recovery_seconds"].why_null == "no job that lost a node was measured"
    assert "the recovery was not measured" in record().warnings[0]
    assert len(record().runs) == 3


def test_node_is_not_terminated_without_confirmation(jobs: list[Job]) -> None:
    Path("bench.toml").write_text(RECOVERY)
    ended = run("bench", *TWO, "bench.toml", stdin="n\n")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "a node of trn-pilot is terminated" in " ".join(ended.output.split())
    assert jobs == []


@pytest.mark.parametrize(
    ("job", "options", "says"),
    [
        ("retries = 0\n", (), "sides.trainium.recovery is true, and job.toml has retries = 0"),
        ('on = "slurm"\n', ("-c", "trn:stacks=pcs"), "does not terminate Slurm nodes"),
        ('on = "sagemaker"\n', ("-c", "trn:stacks=sagemaker"), "SageMaker does not start a job again"),
    ],
)
def test_recovery_that_cannot_be_measured_is_refused(
    jobs: list[Job], job: str, options: tuple[str, ...], says: str
) -> None:
    Path("bench.toml").write_text(RECOVERY)
    Path("job.toml").write_text(JOB_FILE + job)
    ended = run("bench", *TWO, *options, "--yes", "bench.toml")
    assert (ended.exit_code, jobs) == (ExitCode.BAD_INPUT, [])
    assert says in " ".join(ended.stderr.split())


@pytest.mark.usefixtures("jobs")
def test_missing_result_of_another_tool_is_named() -> None:
    Path("bench.toml").write_text(FILE.replace("tuned = true", 'tuned = true\nresults = ["none.json"]'))
    ended = run("bench", *TWO, "bench.toml")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "has no none.json in its outputs" in ended.stderr


def test_mistakes_in_the_file_start_nothing(jobs: list[Job]) -> None:
    Path("bench.toml").write_text(FILE.replace("steps = 3", "step = 3"))
    ended = run("bench", *TWO, "bench.toml")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "step is not a known key; nearest: steps" in ended.stderr
    assert jobs == []


def test_job_that_is_slowed_is_not_measured(jobs: list[Job]) -> None:
    Path("job.toml").write_text(f"{JOB_FILE}observe = true\nprofile = [0]\n")
    ended = run("bench", *TWO, "bench.toml")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "bench.toml has 2 mistakes" in ended.stderr
    for key in ("observe", "profile"):
        assert f"sides.trainium.job: job.toml has {key}, which slows the job" in ended.stderr
    assert jobs == []


@pytest.mark.usefixtures("jobs")
def test_report_reads_everything_in_the_folder_of_the_records() -> None:
    run("bench", *TWO, "bench.toml")
    ended = run("report", "evidence")
    assert "does not count" not in ended.output
    assert "Written: report.html" in ended.output
