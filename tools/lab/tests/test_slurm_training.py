"""examples/lm on two Slurm nodes: submitted with sbatch, submitit and `trn run`, and after a power loss."""

import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tools.lab.cluster_jobs import EXAMPLE, LONGEST_LOG, MODEL, PACED, STEPS, training
from tools.lab.proxy import WRITING_DENIED
from tools.lab.pytorch import PYTHON
from tools.lab.slurm.cluster import ENDED, SlurmCluster
from tools.lab.slurm.jobs import SlurmJobs, Submitted
from tools.lab.slurm.layers import HOMES, USERS
from tools.lab.stored_jobs import PROGRESS
from tools.lab.tests.test_jobs import MANIFEST

USER = "ada"
ENVIRONMENT = "PYTHONWARNINGS=ignore GLOO_SOCKET_IFNAME=eth0"

TRAINING = """\
#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --gres=neuron:16 --chdir={folder} --output=log --open-mode=append --requeue
export {environment}
# Time for a fault in the first attempt only.
export PAUSE_SECONDS=$((${{SLURM_RESTART_COUNT:-0}} ? 0 : 1))
srun --kill-on-bad-exit=1 bash --login -c '{command}'
"""
"""A batch script that does not use `trn`."""


@dataclass(frozen=True, kw_only=True)
class Trained:
    """The results of a training: the losses by step, and the model."""

    losses: Mapping[int, str]
    model: bytes


@pytest.fixture(scope="module")
def jobs(slurm: SlurmCluster) -> SlurmJobs:
    return SlurmJobs(slurm)


@pytest.fixture(scope="module")
def undisturbed(slurm: SlurmCluster, jobs: SlurmJobs) -> Mapping[str, Trained]:
    """Trainings without a fault, by how they were submitted. sbatch and submitit use examples/slurm unchanged."""
    folder = slurm.home / USER / "examples"
    for name in ("lm", "slurm"):
        shutil.copytree(EXAMPLE.parent / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    give_to_user(folder)
    options = " ".join(f"--{option} {value}" for option, value in {**MODEL, "checkpoint-every": STEPS}.items())
    enter = f"cd examples/slurm && export {ENVIRONMENT} &&"
    sbatch = int(slurm.run(f"{enter} sbatch --parsable train.sbatch {options}", user=USER))
    shown = slurm.run(f"{enter} {PYTHON} train_submitit.py {options}", user=USER)
    submitit = int(shown.split()[2].rstrip(":"))
    job = submit_with_trn(jobs, paced=False)
    logs = {sbatch: f"lm-{sbatch}.out", submitit: f"submitit/{submitit}/{submitit}_0_log.out"}
    for number in (sbatch, submitit, job.slurm_id):
        fields = slurm.await_state(number, *ENDED)
        log = folder / "slurm" / logs.get(number, "")
        shown = log.read_text()[-LONGEST_LOG:] if log.is_file() else jobs.log(job.id, 1, 0)
        assert fields["JobState"] == "COMPLETED", shown
    results = {
        name: trained(folder / "slurm" / logs[number], folder / f"slurm/checkpoints/{number}/outputs/model.pt")
        for name, number in (("sbatch", sbatch), ("submitit", submitit))
    }
    return {**results, "trn run": trained_with_trn(jobs, job)}


def give_to_user(folder: Path) -> None:
    """Make the user the owner of a folder and its contents."""
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, USERS[USER], USERS[USER])


def submit_paced(slurm: SlurmCluster, name: str) -> int:
    """Submit a job that trains in a folder of the given name, slowly in its first attempt."""
    folder = slurm.home / USER / name
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PACED, folder)
    give_to_user(folder)
    command, _ = training(paced=True)
    script = TRAINING.format(folder=f"{HOMES}/{USER}/{name}", environment=ENVIRONMENT, command=command)
    return slurm.sbatch(script, user=USER)


def submit_with_trn(jobs: SlurmJobs, *, paced: bool) -> Submitted:
    """Submit a training with `trn`. A paced training is slow in its first attempt."""
    command, environment = training(paced=paced)
    if paced:
        command = f"PAUSE_SECONDS=$((TRN_ATTEMPT == 1)) {command}"
    return jobs.submit("training", command, nodes=2, environment=environment, retries=1)


def trained(log: Path, model: Path) -> Trained:
    losses = {int(step): loss for step, loss in PROGRESS.findall(log.read_text())}
    return Trained(losses=losses, model=model.read_bytes())


def trained_with_trn(jobs: SlurmJobs, job: Submitted, *, attempts: int = 1) -> Trained:
    losses = {step: loss for number in range(1, attempts + 1) for step, loss in jobs.losses(job.id, number).items()}
    model = jobs.object(job.id, "outputs/model.pt") or b""
    return Trained(losses=losses, model=model)


def await_log_of_last_checkpoint(slurm: SlurmCluster, jobs: SlurmJobs, job: Submitted) -> None:
    """Refuse later checkpoints, and wait for the losses before the last one: a power loss would end its log earlier."""
    first = slurm.nodes[slurm.job(job.slurm_id)["BatchHost"]]
    slurm.lab.proxy.s3_faults[first.instance.address] = replace(WRITING_DENIED, path=MANIFEST)

    def is_logged() -> bool:
        step = max(int(found) for key in jobs.checkpoints(job.id) for found in re.findall(r"step-(\d+)\.json$", key))
        return step in jobs.losses(job.id, 1)

    slurm.wait_for("the log of the last checkpoint", is_logged)


def lose_power(slurm: SlurmCluster, job: int, *, batch_host: bool, next_step: Callable[[], bool]) -> None:
    """Cut the power of a node of a job, and wait for the first step after the restart, and for the job's end.

    Args:
        batch_host: Whether the node is the one that runs the batch script.
        next_step: Whether the restarted job has completed a step.
    """
    fields = slurm.job(job)
    nodes = slurm.run(f"scontrol show hostnames {fields['NodeList']}").split()
    lost = next(name for name in nodes if (name == fields["BatchHost"]) == batch_host)
    cut = time.time()
    slurm.cut_power(lost)
    slurm.wait_for("Slurm's detection", lambda: "DOWN" in slurm.node_fields(lost)["State"])
    detected = time.time()
    slurm.wait_for("the next step", next_step)
    print(f"power cut: Slurm's detection {detected - cut:.0f} s, next step {time.time() - detected:.0f} s later")
    fields = slurm.await_state(job, *ENDED)
    assert (fields["JobState"], fields["Restarts"]) == ("COMPLETED", "1")
    assert lost not in slurm.run(f"scontrol show hostnames {fields['NodeList']}").split()
    slurm.release(lost)


def test_training_is_the_same_however_it_is_submitted(undisturbed: Mapping[str, Trained]) -> None:
    assert list(undisturbed["sbatch"].losses) == list(range(1, STEPS + 1))
    assert undisturbed["submitit"] == undisturbed["sbatch"]
    assert undisturbed["trn run"] == undisturbed["sbatch"]


def test_training_with_sbatch_resumes_after_a_node_loses_power(
    slurm: SlurmCluster, undisturbed: Mapping[str, Trained]
) -> None:
    job = submit_paced(slurm, "power-cut")
    checkpoints = slurm.home / USER / "power-cut/checkpoints"
    slurm.wait_for("a checkpoint", lambda: checkpoints.is_dir() and list(checkpoints.glob("step-*")))

    def has_next_step() -> bool:
        return slurm.output("power-cut/log").count("rank 0: first step") == 2

    lose_power(slurm, job, batch_host=False, next_step=has_next_step)
    folder = slurm.home / USER / "power-cut"
    assert (folder / "log").read_text().count("TRN step=1 ") == 1
    assert trained(folder / "log", folder / "outputs/model.pt") == undisturbed["sbatch"]


def test_job_of_trn_run_resumes_after_its_first_node_loses_power(
    slurm: SlurmCluster, jobs: SlurmJobs, undisturbed: Mapping[str, Trained]
) -> None:
    job = submit_with_trn(jobs, paced=True)
    slurm.wait_for("a checkpoint", lambda: jobs.checkpoints(job.id))
    await_log_of_last_checkpoint(slurm, jobs, job)
    lose_power(slurm, job.slurm_id, batch_host=True, next_step=lambda: bool(jobs.first_steps(job.id, 2)))
    end = jobs.content(job.id, "end.json") or {}
    assert (end["result"], end["attempts"]) == ("succeeded", 2)
    assert (jobs.content(job.id, "attempts/1/end.json") or {})["result"] == "node-lost"
    assert 1 not in jobs.losses(job.id, 2)
    assert trained_with_trn(jobs, job, attempts=2) == undisturbed["trn run"]
