"""Slurm as AWS PCS configures it from the settings of a plan: a controller, and four nodes that start with jobs."""

import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import pytest

from tools.lab.cluster_jobs import EXAMPLE, LONGEST_LOG, PACED, PROGRESS, STEPS, first_steps, training
from tools.lab.laboratory import Laboratory
from tools.lab.node import Node
from tools.lab.plans import MAX_NODES, lab_plan
from tools.lab.pytorch import with_torchrun
from tools.lab.shell import CommandError
from tools.lab.site import lose_a_device
from tools.lab.slurm.cluster import SlurmCluster
from tools.lab.slurm.layers import HOMES, USERS

FAULTY = 0
"""The number of the one node that lacks a device."""

SLEEP = "hostname; sleep 600"
SCRIPTS = {
    "on faulty node": "hostname",
    "over time limit": SLEEP,
    "cancelled": SLEEP,
    "of another user": "hostname; sleep 20",
    "with exit code": "hostname; exit 3",
}
"""All jobs have one node. The first one in the queue gets the first node that starts, which is faulty."""

LIMITS = {"over time limit": "1"}
"""In minutes."""

TRAINING = """\
#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --gres=neuron:16 --chdir={folder} --output=log --open-mode=append --requeue
export OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore GLOO_SOCKET_IFNAME=eth0
# Time for a fault in the first attempt only.
export PAUSE_SECONDS=$((${{SLURM_RESTART_COUNT:-0}} ? 0 : {pause}))
srun --kill-on-bad-exit=1 bash --login -c '{command}'
"""
"""A training of examples/lm as any user of Slurm submits it."""

ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A job that has ended. fields: those of `scontrol show job`. output: of the batch script."""

    fields: Mapping[str, str]
    output: str

    @property
    def began(self) -> datetime:
        return datetime.fromisoformat(self.fields["StartTime"])

    @property
    def ended(self) -> datetime:
        return datetime.fromisoformat(self.fields["EndTime"])


def prepare(number: int, node: Node) -> None:
    """All nodes have PyTorch, and one lacks a device."""
    with_torchrun(number, node)
    if number == FAULTY:
        lose_a_device(node)


@pytest.fixture(scope="module")
def slurm(lab: Laboratory) -> Iterator[SlurmCluster]:
    with SlurmCluster(lab, lab_plan(nodes=MAX_NODES)) as cluster:
        cluster.prepare(prepare)
        yield cluster


@pytest.fixture(scope="module")
def jobs(slurm: SlurmCluster) -> Mapping[str, Ended]:
    """The jobs of SCRIPTS, submitted together to a cluster without nodes."""
    ids: dict[str, int] = {}
    for name, script in SCRIPTS.items():
        limit = f"--time={LIMITS.get(name, 'UNLIMITED')}"
        options = ("--nodes=1", "--gres=neuron:16", "--output=%j.out", limit)
        ids[name] = slurm.sbatch(f"#!/bin/bash\n{script}\n", *options, user=user_of(name))
    slurm.await_state(ids["cancelled"], "RUNNING")
    slurm.run(f"scancel {ids['cancelled']}")
    return {
        name: Ended(fields=slurm.await_state(job, *ENDED), output=slurm.output(f"{job}.out", user=user_of(name)))
        for name, job in ids.items()
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
    assert "15 of 16 Neuron devices (missing 7)" in (record.reason or "")
    job = jobs["on faulty node"]
    assert job.fields["JobState"] == "COMPLETED"
    assert job.fields["Restarts"] == "1"
    hosts = {line for one in jobs.values() for line in one.output.split() if line.startswith("ip-")}
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


def submit_training(slurm: SlurmCluster, name: str, *, pause: int) -> int:
    """The id of a job that trains in a separate folder. pause: seconds of each step in the first attempt."""
    folder = slurm.home / "ada" / name
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PACED, folder)
    for path in (folder, *folder.iterdir()):
        shutil.chown(path, USERS["ada"], USERS["ada"])
    command, _ = training(paced=bool(pause))
    return slurm.sbatch(TRAINING.format(folder=f"{HOMES}/ada/{name}", pause=pause, command=command))


def losses(slurm: SlurmCluster, name: str) -> Mapping[int, str]:
    """The loss by step, as the log of a training has it."""
    return {int(step): loss for step, loss in PROGRESS.findall(slurm.output(f"{name}/log"))}


@pytest.fixture(scope="module")
def undisturbed(slurm: SlurmCluster, jobs: Mapping[str, Ended]) -> str:
    """The name of a training that nothing happens to."""
    assert jobs
    job = submit_training(slurm, "undisturbed", pause=0)
    fields = slurm.await_state(job, *ENDED)
    assert fields["JobState"] == "COMPLETED", slurm.output("undisturbed/log")[-LONGEST_LOG:]
    return "undisturbed"


def test_training_submitted_with_sbatch_runs_on_two_nodes(slurm: SlurmCluster, undisturbed: str) -> None:
    assert list(losses(slurm, undisturbed)) == list(range(1, STEPS + 1))
    assert set(first_steps(slurm.output(f"{undisturbed}/log"))) == {0, 1}


def test_training_resumes_after_a_node_loses_power_with_the_same_loss(slurm: SlurmCluster, undisturbed: str) -> None:
    job = submit_training(slurm, "power-cut", pause=1)
    folder = slurm.home / "ada/power-cut/checkpoints"
    slurm.wait_for("a checkpoint", lambda: folder.is_dir() and list(folder.glob("step-*")))
    lost = slurm.job(job)["NodeList"]
    *_, last = slurm.run(f"scontrol show hostnames {lost}").split()
    cut = time.time()
    slurm.cut_power(last)
    fields = slurm.await_state(job, *ENDED)
    log = slurm.output("power-cut/log")
    assert fields["JobState"] == "COMPLETED", log[-LONGEST_LOG:]
    assert fields["Restarts"] == "1"
    assert last not in slurm.run(f"scontrol show hostnames {fields['NodeList']}").split()
    assert losses(slurm, "power-cut") == losses(slurm, undisturbed)
    models = [(slurm.home / "ada" / name / "outputs/model.pt").read_bytes() for name in ("power-cut", undisturbed)]
    assert models[0] == models[1]
    print(f"power cut: {max(first_steps(log).values()) - cut:.1f} s to the next step on every rank")


def test_epilog_drains_a_node_that_a_job_left_unhealthy(slurm: SlurmCluster, undisturbed: str) -> None:
    assert undisturbed
    job = slurm.sbatch("#!/bin/bash\nsleep 600\n", "--nodes=1")
    name = slurm.await_state(job, "RUNNING")["NodeList"]
    slurm.nodes[name].fit(replace(slurm.site.hardware, missing_devices=(7,)))
    slurm.run(f"scancel {job}")
    slurm.wait_for("the drain", lambda: "DRAIN" in slurm.node_fields(name)["State"])
    assert "trn: 15 of 16 Neuron devices (missing 7)" in slurm.run("sinfo --list-reasons --format=%E")
