"""python -m tools.lab tools.lab.slurm.bench: empty jobs of `trn run` on Slurm, compared with sbatch.

Each time is from the end of sbatch to the end of the job. The nodes already run.
"""

import time
from statistics import median

from tools.lab.cluster_jobs import torchrun
from tools.lab.laboratory import laboratory
from tools.lab.paths import SHOWN
from tools.lab.plans import lab_plan
from tools.lab.pytorch import with_torchrun
from tools.lab.slurm.cluster import ENDED, SlurmCluster
from tools.lab.slurm.jobs import SlurmJobs
from tools.lab.slurm.layers import HOMES
from tools.lab.waiting import wait_for

NODES = 2
RUNS = 5
AIM_SECONDS = 3
LOOK_SECONDS = 0.1
USER = "ada"
ENVIRONMENT = {"GLOO_SOCKET_IFNAME": "eth0"}
EMPTY = "empty.py"


def end(slurm: SlurmCluster, job: int, started: float) -> float:
    """Wait for the end of the job, and return the seconds since `started`."""
    wait_for(f"the end of job {job}", lambda: slurm.job(job)["JobState"] in ENDED, seconds=300, pause=LOOK_SECONDS)
    seconds = time.time() - started
    assert slurm.job(job)["JobState"] == "COMPLETED"
    return seconds


def with_trn(slurm: SlurmCluster, jobs: SlurmJobs) -> float:
    """Seconds of an empty job of `trn run`, without its upload and its submission."""
    job, started = jobs.submit("empty", torchrun(f"$HOME/{EMPTY}"), nodes=NODES, environment=ENVIRONMENT), time.time()
    return end(slurm, job.slurm_id, started)


def with_sbatch(slurm: SlurmCluster) -> float:
    variables = " ".join(f"{name}={value}" for name, value in ENVIRONMENT.items())
    options = f"#SBATCH --nodes={NODES} --ntasks-per-node=1 --gres=neuron:16 --output=sbatch.out"
    command = f"srun --kill-on-bad-exit=1 bash --login -c '{torchrun(f'{HOMES}/{USER}/{EMPTY}')}'"
    job, started = slurm.sbatch(f"#!/bin/bash\n{options}\nexport {variables}\n{command}\n", user=USER), time.time()
    return end(slurm, job, started)


def main() -> None:
    with laboratory() as lab, SlurmCluster(lab, lab_plan(nodes=NODES)) as slurm:
        slurm.prepare(with_torchrun)
        jobs = SlurmJobs(slurm)
        (slurm.home / USER / EMPTY).write_text("")
        # The first pair starts the nodes, fills caches and does not count.
        pairs = [(with_trn(slurm, jobs), with_sbatch(slurm)) for _ in range(RUNS + 1)][1:]
        for ours, theirs in pairs:
            print(f"  trn run {ours:.1f} s, sbatch {theirs:.1f} s")
        ours, theirs = (median(times) for times in zip(*pairs, strict=True))
    more = f"{ours - theirs:.1f} s more (aim {AIM_SECONDS} s)"
    shown = f"an empty job on {NODES} Slurm nodes: {ours:.1f} s, with sbatch {theirs:.1f} s: {more}"
    SHOWN.write_text(shown)
    print(shown)


if __name__ == "__main__":
    main()
