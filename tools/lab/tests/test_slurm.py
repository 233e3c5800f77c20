"""Slurm as AWS PCS configures it from a plan: a controller, and up to four nodes that start with jobs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tools.lab.plans import MAX_NODES
from tools.lab.pytorch import with_torchrun
from tools.lab.shell import CommandError
from tools.lab.site import BUCKET, lose_a_device
from tools.lab.slurm.cluster import ENDED, SlurmCluster
from trainium_core.engines.pcs.slurm_queue import end_command
from trainium_runtime.handlers.node_group_guard import FailureLimit, failed_nodes
from trainium_runtime.node_store import NodeStore
from trainium_wire.keys import RECORDS_PREFIX

SLEEP = "hostname; sleep 600"
SCRIPTS = {
    "on faulty node": "hostname",
    "over time limit": SLEEP,
    "cancelled": SLEEP,
    "of another user": "hostname; until scontrol show job {} | grep -q JobState=RUNNING; do sleep 1; done; sleep 2",
    "with exit code": "hostname; exit 3",
}
"""All jobs have one node. The first one in the queue gets the first node that starts, which is faulty. The job of
another user runs until the one over its time limit, whose ID it contains, has begun."""

LIMITS = {"over time limit": "2"}
"""In minutes, more than a node may start later than another."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A job that has ended.

    Attributes:
        fields: Fields of `scontrol show job`.
        output: Output of the batch script.
    """

    fields: Mapping[str, str]
    output: str

    @property
    def began(self) -> datetime:
        return datetime.fromisoformat(self.fields["StartTime"])

    @property
    def ended(self) -> datetime:
        return datetime.fromisoformat(self.fields["EndTime"])


@pytest.fixture(scope="module")
def submitted(slurm: SlurmCluster) -> Mapping[str, int]:
    """The IDs of the jobs of SCRIPTS, submitted together to a cluster without nodes; one was cancelled."""
    ids: dict[str, int] = {}
    for name, script in SCRIPTS.items():
        limit = f"--time={LIMITS.get(name, 'UNLIMITED')}"
        options = ("--nodes=1", "--gres=neuron:16", "--output=%j.out", limit)
        script = script.format(ids.get("over time limit"))
        ids[name] = slurm.sbatch(f"#!/bin/bash\n{script}\n", *options, user=user_of(name))
    slurm.await_state(ids["cancelled"], "RUNNING")
    slurm.run(f"scancel {ids['cancelled']}")
    return ids


@pytest.fixture(scope="module")
def ending(slurm: SlurmCluster, submitted: Mapping[str, int]) -> int:
    """A running job that the command of `trn destroy` ends after two minutes."""
    assert submitted
    script = "#!/bin/bash\ntrap 'echo signalled; scontrol requeue $SLURM_JOB_ID' USR1\nwhile sleep 1; do :; done\n"
    job = slurm.sbatch(script, "--nodes=1", "--requeue", "--signal=B:USR1@120", "--output=%j.out")
    slurm.await_state(job, "RUNNING")
    slurm.controller.execute("bash", "-c", end_command(str(job)))
    return job


@pytest.fixture(scope="module")
def jobs(slurm: SlurmCluster, submitted: Mapping[str, int], ending: int) -> Mapping[str, Ended]:
    """The jobs of SCRIPTS, all ended."""
    assert ending
    return {
        name: Ended(fields=slurm.await_state(job, *ENDED), output=slurm.output(f"{job}.out", user=user_of(name)))
        for name, job in submitted.items()
    }


def user_of(name: str) -> str:
    return "ben" if name == "of another user" else "ada"


def test_slurm_has_the_version_of_the_plan(slurm: SlurmCluster) -> None:
    assert f" {slurm.plan.pcs.slurm_version}." in slurm.run("sinfo --version")


def test_gres_request_beyond_the_devices_is_refused(slurm: SlurmCluster) -> None:
    with pytest.raises(CommandError, match="Requested node configuration is not available"):
        slurm.run("sbatch --gres=neuron:17 --wrap hostname")


def test_features_of_the_plan_can_be_required(slurm: SlurmCluster) -> None:
    slurm.run("sbatch --test-only --constraint='neuron&trn1.32xlarge&neuroncores32' --wrap hostname")
    with pytest.raises(CommandError, match="Invalid feature specification"):
        slurm.run("sbatch --constraint=trn2 --wrap hostname")


def test_jobs_start_nodes_from_zero(slurm: SlurmCluster, jobs: Mapping[str, Ended]) -> None:
    assert jobs["of another user"].fields["JobState"] == "COMPLETED"
    assert set(slurm.started) == {f"nodes-{number}" for number in range(1, MAX_NODES + 1)}


def test_node_that_fails_its_proof_is_terminated_and_runs_no_job(
    slurm: SlurmCluster, jobs: Mapping[str, Ended]
) -> None:
    (faulty,) = slurm.terminated
    record = slurm.site.record(faulty.node)
    assert record
    assert record.state == "failed"
    assert "15 of 16 Neuron devices (missing: device 7)" in (record.reason or "")
    job = jobs["on faulty node"]
    assert job.fields["JobState"] == "COMPLETED"
    assert job.fields["Restarts"] == "1"
    hosts = {line for job in jobs.values() for line in job.output.split() if line.startswith("ip-")}
    assert hosts
    assert faulty.node.instance.host_name not in hosts


def test_jobs_of_two_users_run_at_once_on_whole_nodes(jobs: Mapping[str, Ended]) -> None:
    other, long = jobs["of another user"], jobs["over time limit"]
    assert other.fields["UserId"].startswith("ben")
    assert long.fields["UserId"].startswith("ada")
    assert long.began < other.ended
    assert other.began < long.ended
    assert other.output != long.output


@pytest.mark.parametrize(
    ("name", "state", "code"),
    [("over time limit", "TIMEOUT", "0:15"), ("cancelled", "CANCELLED", "0:15"), ("with exit code", "FAILED", "3:0")],
)
def test_end_of_a_job_has_its_state_and_exit_code(jobs: Mapping[str, Ended], name: str, state: str, code: str) -> None:
    fields = jobs[name].fields
    assert (fields["JobState"], fields["ExitCode"]) == (state, code)


def test_queue_and_priority_decide_which_job_starts_first(slurm: SlurmCluster, jobs: Mapping[str, Ended]) -> None:
    assert jobs
    first = slurm.sbatch(f"#!/bin/bash\n{SLEEP}\n", "--nodes=1")
    name = slurm.await_state(first, "RUNNING")["NodeList"]
    short = ("#!/bin/bash\nsleep 2\n", "--nodes=1", f"--nodelist={name}")
    waiting = [slurm.sbatch(*short), slurm.sbatch(*short), slurm.sbatch(*short, "--partition=urgent")]
    # As `trn run --priority` does.
    slurm.controller.execute("scontrol", "update", f"JobId={waiting[1]}", "Nice=-100")
    slurm.run(f"scancel {first}")
    started = {number: slurm.await_state(number, "COMPLETED")["StartTime"] for number in waiting}
    assert sorted(waiting, key=lambda number: started[number]) == waiting[::-1]
    assert len(set(started.values())) == len(waiting)


def test_epilog_drains_a_node_that_a_job_left_unhealthy(slurm: SlurmCluster, jobs: Mapping[str, Ended]) -> None:
    assert jobs
    job = slurm.sbatch("#!/bin/bash\nsleep 600\n", "--nodes=1")
    name = slurm.await_state(job, "RUNNING")["NodeList"]
    slurm.nodes[name].fit(replace(slurm.site.hardware, missing_devices=(7,)))
    slurm.run(f"scancel {job}")
    slurm.wait_for("the drain", lambda: "DRAIN" in slurm.node_fields(name)["State"])
    assert "trn: 15 of 16 Neuron devices (missing: device 7)" in slurm.run("sinfo --list-reasons --format=%E")
    slurm.release(name)


def test_end_command_signals_a_running_job_and_prevents_its_restart(slurm: SlurmCluster, ending: int) -> None:
    fields = slurm.await_state(ending, *ENDED)
    assert (fields["JobState"], fields["Restarts"]) == ("TIMEOUT", "0")
    assert "signalled" in slurm.output(f"{ending}.out")


class NodeGroup:
    """A stand-in for EC2, PCS and SNS that answers the guard's calls from the state of the lab.

    If the maximum is lowered, AWS PCS removes the nodes with higher numbers from Slurm, terminates their instances, and
    their jobs fail (AWS PCS User Guide, updating a compute node group). This stand-in sets the nodes to DOWN, which
    ends their jobs, and turns them off.
    """

    def __init__(self, slurm: SlurmCluster) -> None:
        self.maximum = MAX_NODES
        self.messages: list[str] = []
        self._slurm = slurm

    def get_paginator(self, _operation: str) -> "NodeGroup":
        return self

    def paginate(self, **_: Any) -> Iterator[Mapping[str, Any]]:
        terminated = [entry.node for entry in self._slurm.terminated]
        states = (("running", list(self._slurm.nodes.values())), ("terminated", terminated))
        instances = [
            {"InstanceId": node.instance.instance_id, "State": {"Name": state}, "LaunchTime": datetime.now(UTC)}
            for state, nodes in states
            for node in nodes
        ]
        yield {"Reservations": [{"Instances": instances}]}

    def get_compute_node_group(self, **_: str) -> Mapping[str, Any]:
        return {"computeNodeGroup": {"scalingConfiguration": {"minInstanceCount": 0, "maxInstanceCount": self.maximum}}}

    def update_compute_node_group(self, *, scalingConfiguration: Mapping[str, int], **_: str) -> None:  # noqa: N803
        self.maximum = scalingConfiguration["maxInstanceCount"]
        for number in range(self.maximum + 1, MAX_NODES + 1):
            if f"nodes-{number}" in self._slurm.nodes:
                self._slurm.cut_power(f"nodes-{number}")
        beyond = f"NodeName=nodes-[{self.maximum + 1}-{MAX_NODES}]"
        self._slurm.controller.execute("scontrol", "update", beyond, "State=DOWN", f"Reason=maximum is {self.maximum}")

    def publish(self, *, Message: str, **_: str) -> None:  # noqa: N803
        self.messages.append(Message)


def test_failing_launches_end_at_the_limit_and_the_job_waits(slurm: SlurmCluster, jobs: Mapping[str, Ended]) -> None:
    assert jobs
    for name in list(slurm.nodes):
        slurm.release(name)
    slurm.prepare(lambda _, node: lose_a_device(node))
    group, store = NodeGroup(slurm), NodeStore(slurm.lab.client("s3"), BUCKET, RECORDS_PREFIX)
    earlier = len(failed_nodes({}, store.records()))  # those of other tests
    names = ("CLUSTER", "CLUSTER_ID", "GROUP_ID", "TOPIC", "MIN_NODES", "NODES", "GROUP_NAME")
    settings = {**dict.fromkeys(names, ""), "FAILURES": str(earlier)}
    guard = FailureLimit(settings, store=store, ec2=group, pcs=group, sns=group)
    begun, checked = len(slurm.started), len(slurm.terminated)
    job = slurm.sbatch("#!/bin/bash\nhostname\n", "--nodes=1", "--output=%j.out")

    def is_bounded() -> bool:
        nonlocal checked
        new = slurm.terminated[checked:]
        checked += len(new)
        for entry in new:
            event = {"detail": {"instance-id": entry.node.instance.instance_id}}
            guard.check(event, now=datetime.now(UTC))
        return group.maximum == 0

    slurm.wait_for("the limit", is_bounded)
    slurm.await_state(job, "PENDING")
    # Otherwise Slurm starts a requeued job only after two minutes.
    slurm.controller.execute("scontrol", "update", f"JobId={job}", "StartTime=now")
    slurm.wait_for("Slurm's reason", lambda: slurm.job(job)["Reason"].startswith("Nodes_required_for_job_are_DOWN"))
    assert (len(slurm.started) - begun, slurm.output(f"{job}.out")) == (1, "")
    (message,) = group.messages
    assert "15 of 16 Neuron devices (missing: device 7)" in message
    slurm.run(f"scancel {job}")
    slurm.prepare(with_torchrun)
    slurm.controller.execute("scontrol", "update", f"NodeName=nodes-[1-{MAX_NODES}]", "State=RESUME")
