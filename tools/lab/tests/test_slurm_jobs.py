"""Ends of jobs of `trn run` on Slurm: their result in S3, and their state in Slurm; and nodes that end soon."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from tools.lab.site import BUCKET
from tools.lab.slurm.cluster import ENDED, SlurmCluster
from tools.lab.slurm.jobs import SlurmJobs
from trainium_wire.job_keys import job_keys
from trainium_wire.keys import MEMBERSHIP_KEY
from trainium_wire.membership import Membership, Notice

BUSY = "while sleep 1; do echo busy; done"


class Case(NamedTuple):
    """A job on one node, and its expected end.

    Attributes:
        fields: Further fields of `Job`.
        state: State in Slurm.
        exit_code: Exit code in Slurm.
        result: Result in S3.
        reason: A regular expression for the reason in S3.
        attempts: Number of attempts.
    """

    command: str
    fields: Mapping[str, Any]
    state: str
    exit_code: str
    result: str
    reason: str = ""
    attempts: int = 1


CASES = {
    "fails": Case("exit 3", {"retries": 1}, "FAILED", "3:0", "failed", "ended with exit code 3"),
    "retried": Case(
        "test $TRN_ATTEMPT = 2 || exit 9",
        {"retries": 1, "retry_on_exit_codes": (9,)},
        *("COMPLETED", "0:0", "succeeded"),
        attempts=2,
    ),
    "hangs": Case("sleep 1000", {"hang_seconds": 20}, "FAILED", "1:0", "hung", "no output .* for 20 seconds"),
    "over-limit": Case(BUSY, {"time_limit_seconds": 20}, "FAILED", "1:0", "time-limit", "time limit of 20 seconds"),
    "cancelled": Case(BUSY, {"retries": 1}, "CANCELLED", "1:0", "stopped", "scancel"),
    "stopped": Case(BUSY, {"retries": 1}, "CANCELLED", "1:0", "stopped", "trn stop"),
}


@pytest.fixture(scope="module")
def ends(slurm: SlurmCluster) -> Mapping[str, tuple[Mapping[str, str], Mapping[str, Any]]]:
    """The fields of each job in Slurm, and its end in S3. Up to four jobs run at a time."""
    jobs = SlurmJobs(slurm)
    # The first node of the cluster fails its verification, after which Slurm starts its job again.
    slurm.await_state(slurm.sbatch("#!/bin/bash\nhostname\n", "--nodes=1"), "COMPLETED")
    submitted = {name: jobs.submit(name, case.command, **case.fields) for name, case in CASES.items()}
    cancelled, stopped = submitted["cancelled"], submitted["stopped"]
    for job in (cancelled, stopped):
        slurm.wait_for("a line of the log", lambda job=job: jobs.log(job.id, 1, 0))
    slurm.run(f"scancel {cancelled.slurm_id}")
    jobs.s3.put_object(Bucket=BUCKET, Key=job_keys(stopped.id).stop, Body=b'{"reason": "trn stop"}')
    return {
        name: (slurm.await_state(job.slurm_id, *ENDED), jobs.content(job.id, "end.json") or {})
        for name, job in submitted.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_end_of_a_job_is_as_expected_in_slurm_and_s3(
    ends: Mapping[str, tuple[Mapping[str, str], Mapping[str, Any]]], name: str
) -> None:
    case, (fields, end) = CASES[name], ends[name]
    assert (fields["JobState"], fields["ExitCode"]) == (case.state, case.exit_code)
    assert (end.get("result"), end.get("attempts")) == (case.result, case.attempts)
    assert re.search(case.reason, end["reason"])
    assert int(fields["Restarts"]) == case.attempts - 1


def test_idle_node_is_drained_before_its_end(slurm: SlurmCluster) -> None:
    job = slurm.sbatch("#!/bin/bash\nhostname\n", "--nodes=1")
    name = slurm.await_state(job, "COMPLETED")["NodeList"]
    s3, key = slurm.lab.client("s3"), {"Bucket": BUCKET, "Key": MEMBERSHIP_KEY}
    end = Notice.of("pilot-stop", datetime.now(UTC) + timedelta(minutes=10), "the Capacity Block ends")
    s3.put_object(**key, Body=Membership(notices=(end,)).to_json().encode())
    slurm.wait_for("the drain", lambda: "DRAIN" in slurm.node_fields(name)["State"])
    assert "trn: the Capacity Block ends" in slurm.run("sinfo --list-reasons --format=%E")
    s3.delete_object(**key)
    for each in list(slurm.nodes):
        slurm.release(each)
