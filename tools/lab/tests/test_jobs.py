"""Jobs on four booted nodes: `trn run`, torchrun across nodes, and disturbances during a training.

examples/lm is trained once without a disturbance, and once with all disturbances in ENDS, in the attempts of one job
and in jobs that resume it. Both trainings must print the same loss at each step.
"""

import hashlib
import itertools
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tools.lab.cluster_jobs import (
    EXAMPLE,
    INPUT_TEXT,
    LONGEST_LOG,
    OWN_BUCKET,
    PROCESSES,
    SECRET,
    SECRET_ARN,
    STEPS,
    TOKENS,
    UNIT,
    ClusterJobs,
)
from tools.lab.deployment import replace_instance, tag_value
from tools.lab.hardware import LOCAL_DISK_BYTES
from tools.lab.network import cable
from tools.lab.node import Node
from tools.lab.proxy import WRITING_DENIED
from tools.lab.shell import run

HANG_MINUTES = 1
"""Before its first line, a job loads PyTorch on all nodes, which a busy machine does slowly."""
KILLED = 137
MAX_SECONDS = 60
"""Covers the interval of S3 polls, the grace period of ten seconds for processes, and a busy machine."""

SETUP = (
    "id --user; sudo -n true || echo no sudo; ls /home/* || echo no homes; "
    "cd $TRN_INPUT_DIR; cat tokens/first/part; head -1 words; echo $TOKEN; printf %s $TOKEN | sha256sum"
)
INPUTS = {"tokens": f"s3://{OWN_BUCKET}/{TOKENS}/", "words": str(EXAMPLE / "NOTICE.md")}

ENDS = {
    "process killed": ("failed", r"^rank 2 on node 2 \(i-[0-9a-f]+\): ended by signal 9 \(SIGKILL\): out of memory\?$"),
    "node hangs": ("hung", rf"^no output from node 0 for {60 * HANG_MINUTES} seconds; no compiler is running$"),
    "cable lost": ("node-lost", r"^node 3 \(i-[0-9a-f]+, [0-9.]+\) does not answer, according to node [12] "),
    "power cut": ("node-lost", r"^node 0 \(i-[0-9a-f]+, [0-9.]+\) does not answer, according to node [23] "),
    "spot notice": ("interrupted", r"^EC2 reclaims this Spot Instance: terminate, 20\S+Z$"),
    "stopped": ("stopped", "^trn stop$"),
    "disk full": ("failed", r"^rank 0 on node 0 \(i-[0-9a-f]+\): .*; no space is left on the disk of the job$"),
}
"""The expected result of an attempt, and a regular expression for its reason, by disturbance."""

MANIFEST = r"/checkpoints/[^/]+\.json$"


@dataclass(frozen=True, kw_only=True)
class DisturbedAttempt:
    """A disturbed attempt.

    Attributes:
        logs: Log of each node.
        declared: Seconds from the disturbance until the attempt's end was in S3.
        ended: Seconds from the disturbance until no process computed on any node.
        began: When the disturbance happened, in seconds since 1970.
    """

    job: str
    attempt: int
    end: Mapping[str, Any]
    logs: Sequence[str]
    losses: Mapping[int, str]
    declared: float
    ended: float
    began: float


@dataclass(frozen=True, kw_only=True)
class DisturbedTraining:
    """A training with disturbances.

    Attributes:
        attempts: Attempts by disturbance.
        last: The job that completed the training.
    """

    attempts: Mapping[str, DisturbedAttempt]
    last: str


@pytest.fixture(scope="module")
def undisturbed_job(cluster: ClusterJobs) -> str:
    """The ID of a job that succeeded without a disturbance."""
    submitted = time.time()
    job = cluster.start("sound", paced=False, setup=SETUP, inputs=INPUTS, secrets={"TOKEN": SECRET_ARN})
    end = cluster.end_of(job)
    assert end["result"] == "succeeded", end
    steps = cluster.first_steps(job, 1)
    assert len(steps) == cluster.count
    print(f"trn run to the first step on every rank: {max(steps.values()) - submitted:.1f} s")
    return job


@pytest.fixture(scope="module")
def disturbed_training(cluster: ClusterJobs) -> DisturbedTraining:
    """One training with all disturbances."""
    attempts: dict[str, DisturbedAttempt] = {}
    job = cluster.start("outlives", paced=True, retries=4, retry_on_exit_codes=[KILLED], hang_minutes=HANG_MINUTES)

    def disturb(
        what: str,
        act: Callable[[], object],
        *,
        before: Callable[[], object] | None = None,
        undo: Callable[[], object] | None = None,
    ) -> None:
        number = 1 + sum(attempt.job == job for attempt in attempts.values())
        cluster.await_step(job, number)
        if not attempts:
            cluster.wait_for("a checkpoint", lambda: cluster.checkpoints(job))
        if before:
            before()
        began = time.time()
        act()
        end = cluster.end_of(job, number)
        declared = time.time() - began
        if undo:
            undo()
        cluster.wait_for("the end of all ranks", lambda: not cluster.computing(began_before=began))
        ended = time.time() - began
        cluster.wait_for("the end of all units", lambda: not cluster.processes(began_before=began))
        attempts[what] = DisturbedAttempt(
            job=job,
            attempt=number,
            end=end,
            logs=[cluster.log(job, number, node) for node in range(cluster.count)],
            losses=cluster.losses(job, number),
            declared=declared,
            ended=ended,
            began=began,
        )
        print(f"{what}: {end['result']} after {declared:.1f} s, all ranks ended after {ended:.1f} s")

    nodes = cluster.nodes
    disturb("process killed", lambda: signal_ranks(nodes[2], "KILL"))
    disturb("node hangs", lambda: signal_ranks(nodes[1], "STOP"))
    link = cable(nodes[3].instance.address)
    disturb(
        "cable lost",
        lambda: run("ip", "link", "set", link, "down"),
        undo=lambda: run("ip", "link", "set", link, "up"),
    )
    disturb("power cut", lambda: cut_power(nodes[0]), before=lambda: await_half_a_checkpoint(cluster, nodes[0]))
    del cluster.lab.proxy.s3_faults[nodes[0].instance.address]
    replace_instance(cluster.lab, nodes[0].instance.instance_id)
    cluster.await_verified()
    last = cluster.nodes[-1]
    disturb("spot notice", lambda: give_spot_notice(cluster, last))
    instance = last.instance.instance_id
    cluster.wait_for("the controller's tag", lambda: tag_value(cluster.lab, instance, "trn:node") == "draining")
    cluster.lab.metadata.subjects[last.instance.address].notices.clear()
    cluster.await_verified()
    job = cluster.start("resumed", paced=True, resume=job)
    disturb("stopped", lambda: cluster.trn("stop", job))
    job = cluster.start("again", paced=True, resume=job)
    first = cluster.nodes[0]
    disturb(
        "disk full",
        lambda: fill_disk(first),
        before=lambda: cluster.wait_for("a checkpoint", lambda: cluster.checkpoints(job)),
        undo=lambda: empty_disk(first),
    )
    job = cluster.start("finished", paced=False, resume=job)
    cluster.end_of(job)
    for what, attempt in attempts.items():
        if following := cluster.first_steps(attempt.job, attempt.attempt + 1):
            print(f"{what}: {max(following.values()) - attempt.began:.1f} s to the next step on every rank")
    return DisturbedTraining(attempts=attempts, last=job)


def signal_ranks(node: Node, name: str) -> None:
    node.execute("pkill", f"-{name}", "-f", "--", PROCESSES)


def await_half_a_checkpoint(cluster: ClusterJobs, node: Node) -> None:
    """Refuse the manifests of later checkpoints of a node, and wait until the state of one of them is uploaded."""
    proxy, address = cluster.lab.proxy, node.instance.address
    proxy.s3_faults[address] = replace(WRITING_DENIED, path=MANIFEST)
    before = len(proxy.requests)

    def is_uploaded() -> bool:
        mine = [request for request in proxy.requests[before:] if request.client == address and request.method == "PUT"]
        return any("/checkpoints/" in request.path and request.path.endswith("/state.pt") for request in mine)

    cluster.wait_for("the files of a checkpoint", is_uploaded)


def cut_power(node: Node) -> None:
    """End a node as a power loss does. The node no longer answers, not even with a refused connection."""
    run("ip", "link", "set", cable(node.instance.address), "down")
    node.cut_power()


def give_spot_notice(cluster: ClusterJobs, node: Node) -> None:
    end = datetime.now(UTC) + timedelta(minutes=2)
    cluster.lab.metadata.announce_spot_interruption(node.instance.address, at=end.strftime("%Y-%m-%dT%H:%M:%SZ"))


def disk_of_the_job(node: Node) -> str:
    """The mount point of the job's disk."""
    folder = json.loads(node.execute("cat", "/run/trn/launch.json"))["folder"]
    return node.execute("df", "--output=target", folder).split()[-1]


def fill_disk(node: Node) -> None:
    """Fill the job's disk. It is in memory, so it is first shrunk to little more than its contents."""
    disk = disk_of_the_job(node)
    used = int(node.execute("df", "--output=used", "--block-size=1K", disk).split()[-1])
    node.execute("mount", "-o", f"remount,size={used + 64}k", disk)
    node.succeeds("dd", "if=/dev/zero", f"of={disk}/full", "bs=4k", "count=1000")


def empty_disk(node: Node) -> None:
    node.execute("mount", "-o", f"remount,size={LOCAL_DISK_BYTES}", disk_of_the_job(node))


def test_training_over_all_nodes_succeeds(cluster: ClusterJobs, undisturbed_job: str) -> None:
    assert list(cluster.losses(undisturbed_job, 1)) == list(range(1, STEPS + 1))
    assert set(cluster.first_steps(undisturbed_job, 1)) == set(range(cluster.count))


def test_setup_runs_on_every_node_as_job_user(cluster: ClusterJobs, undisturbed_job: str) -> None:
    first_line = (EXAMPLE / "NOTICE.md").read_text().splitlines()[0]
    for node in range(cluster.count):
        assert {"60800", "no sudo", "no homes", INPUT_TEXT, first_line} <= set(
            cluster.log(undisturbed_job, 1, node).splitlines()
        )


def test_secret_is_in_the_environment_but_not_in_journal_or_bucket(cluster: ClusterJobs, undisturbed_job: str) -> None:
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    for number, node in enumerate(cluster.nodes):
        assert {f"{digest}  -", "***"} <= set(cluster.log(undisturbed_job, 1, number).splitlines())
        assert SECRET not in node.execute("journalctl", "--no-pager", "--output=cat")
    assert not [key for key, content in cluster.objects(undisturbed_job).items() if SECRET.encode() in content]


def test_finished_job_leaves_no_process_on_any_node(cluster: ClusterJobs, undisturbed_job: str) -> None:
    assert undisturbed_job
    cluster.wait_for("the end of all units", lambda: not cluster.processes())


def test_nodes_log_in_to_each_other(cluster: ClusterJobs) -> None:
    first, *others = cluster.nodes
    user = first.execute("id", "--name", "--user", "1000").strip()
    options = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes")
    for node in others:
        login = ("runuser", "-u", user, "--", "ssh", *options, node.instance.address, "hostname")
        cluster.wait_for("the exchange of keys", lambda login=login: first.succeeds(*login))
        assert first.execute(*login).strip() == node.instance.host_name


@pytest.mark.parametrize("what", ENDS)
def test_end_of_attempt_has_result_and_reason(disturbed_training: DisturbedTraining, what: str) -> None:
    result, sentence = ENDS[what]
    end = disturbed_training.attempts[what].end
    assert end["result"] == result
    assert re.search(sentence, end["reason"])


@pytest.mark.parametrize("what", ENDS)
def test_all_ranks_end_within_seconds_of_the_attempt(disturbed_training: DisturbedTraining, what: str) -> None:
    assert disturbed_training.attempts[what].ended - disturbed_training.attempts[what].declared < MAX_SECONDS


def test_killed_rank_ends_all_ranks_within_seconds(disturbed_training: DisturbedTraining) -> None:
    assert disturbed_training.attempts["process killed"].ended < MAX_SECONDS


def test_log_of_hung_job_shows_stack_of_each_node(disturbed_training: DisturbedTraining) -> None:
    """The stack is from faulthandler, or from an exception if a node lost its connection to one that ended earlier."""
    for log in disturbed_training.attempts["node hangs"].logs:
        assert re.search(r'File "(.*/)?train.py", line \d+,? in main', log), log[-LONGEST_LOG:]


def test_disturbed_training_computes_same_losses(
    cluster: ClusterJobs, undisturbed_job: str, disturbed_training: DisturbedTraining
) -> None:
    undisturbed = cluster.losses(undisturbed_job, 1)
    for what, attempt in disturbed_training.attempts.items():
        assert attempt.losses.items() <= undisturbed.items(), what
    last = cluster.losses(disturbed_training.last, 1)
    assert STEPS in last
    assert last.items() <= undisturbed.items()
    assert cluster.object(disturbed_training.last, "outputs/model.pt") == cluster.object(
        undisturbed_job, "outputs/model.pt"
    )


def test_attempt_resumes_from_a_checkpoint(disturbed_training: DisturbedTraining) -> None:
    order = list(disturbed_training.attempts.values())
    for before, after in itertools.pairwise(order):
        assert 1 < min(after.losses) <= max(before.losses) + 1


def test_checkpoints_are_stored_in_bucket_of_plan(cluster: ClusterJobs, disturbed_training: DisturbedTraining) -> None:
    assert cluster.checkpoints(disturbed_training.last)
    assert not [key for key in cluster.objects(disturbed_training.last) if "/checkpoints/" in key]


@pytest.mark.usefixtures("disturbed_training")
def test_unit_of_jobs_has_not_failed(cluster: ClusterJobs) -> None:
    for node in cluster.nodes:
        assert UNIT not in node.execute("systemctl", "--failed", "--plain", "--no-legend")
