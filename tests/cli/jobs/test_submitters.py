"""Who submitted a job: `trn run` records it, and `trn jobs` shows it."""

import json
from dataclasses import replace

import pytest

from tests.cli.jobs.cluster_with_jobs import TWO, Cluster
from tests.cli.jobs.test_job_commands import run_to_the_end
from tests.cli.running import run
from tests.core.job_bucket import JOB
from trainium_cli.exit_codes import ExitCode
from trainium_core.aws.identity import AwsIdentities, Identity
from trainium_runtime.errors import UnavailableError


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        ("arn:aws:iam::123456789012:user/alice", "alice"),
        ("arn:aws:iam::123456789012:user/team/ml/alice", "alice"),
        ("arn:aws:sts::123456789012:assumed-role/Admin/alice@example.com", "Admin/alice@example.com"),
        ("arn:aws:sts::123456789012:assumed-role/Admin/botocore-session-1795990500", "Admin"),
        ("arn:aws:sts::123456789012:assumed-role/Admin/1795990500123456789", "Admin"),
        ("arn:aws:sts::123456789012:assumed-role/Admin/1000234567", "Admin/1000234567"),
        ("arn:aws:sts::123456789012:federated-user/alice", "alice"),
        ("arn:aws:iam::123456789012:user/1234567890", "1234567890"),
        ("arn:aws:iam::123456789012:root", "root"),
    ],
)
def test_name_is_that_of_the_user_or_of_role_and_session(arn: str, name: str) -> None:
    assert Identity(account="123456789012", arn=arn).name == name


def test_mine_lists_the_jobs_of_the_credentials(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    _, own = run_to_the_end(cluster, "succeeded")
    assert own.submitted_by == "moto"
    assert "By" not in run("jobs", *TWO).stdout.split()
    other = replace(JOB, submitted_by="Admin/alice")
    replace(cluster.job_nodes, job=other).submit()
    shown = run("jobs", *TWO).stdout
    assert {"By", "moto", "Admin/alice", own.id, other.id} <= {*shown.split()}
    mine = run("jobs", *TWO, "--mine").stdout
    assert own.id in mine
    assert other.id not in mine
    assert "Admin/alice" in run("jobs", *TWO, other.id).stdout
    monkeypatch.setattr(Identity, "name", "bob")
    assert run("jobs", *TWO, "--mine").stdout == "bob submitted none of the last jobs: `trn jobs` lists all.\n"
    assert json.loads(run("jobs", *TWO, "--mine", "--json").stdout) == []


def test_session_named_by_its_time_is_the_role(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    def session(name: str) -> None:
        arn = f"arn:aws:sts::123456789012:assumed-role/Admin/{name}"
        monkeypatch.setattr(AwsIdentities, "identity", lambda _self: Identity(account="123456789012", arn=arn))

    session("botocore-session-1795990500")
    empty = "Admin submitted none of the last jobs: `trn jobs` lists all. The session of your role has no name: set "
    replace(cluster.job_nodes, job=replace(JOB, submitted_by="Admin/alice")).submit()
    assert run("jobs", *TWO, "--mine").stdout == f"{empty}role_session_name in your AWS profile.\n"
    _, own = run_to_the_end(cluster, "succeeded")
    session("botocore-session-1795990999")
    mine = run("jobs", *TWO, "--mine").stdout
    assert own.id in mine
    assert JOB.id not in mine


def test_mine_with_a_job_is_refused() -> None:
    assert run("jobs", *TWO, "--mine", JOB.id).exit_code == ExitCode.BAD_INPUT


def test_job_is_submitted_without_an_identity(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_self: AwsIdentities) -> Identity:
        raise UnavailableError("sts:GetCallerIdentity timed out")

    monkeypatch.setattr(AwsIdentities, "identity", denied)
    ended, job = run_to_the_end(cluster, "succeeded")
    assert (ended.exit_code, job.submitted_by) == (ExitCode.OK, "")
