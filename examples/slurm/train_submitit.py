"""Trains examples/lm on two nodes with submitit. Run it on a file system that all nodes share, in its own folder.

    pip install submitit
    python train_submitit.py --steps 500

Before its time limit, and after the loss of a node, the job is queued again and resumes from its newest checkpoint.
"""

import subprocess
import sys
from pathlib import Path

import submitit

FOLDER = Path(__file__).resolve().parent


class Training(submitit.helpers.Checkpointable):
    """One task on each node. A job that is queued again gets the same arguments."""

    def __call__(self, *arguments: str) -> None:
        job = submitit.JobEnvironment().job_id
        checkpoints = FOLDER / "checkpoints" / job
        folders = ["--checkpoints", str(checkpoints), "--outputs", str(checkpoints / "outputs")]
        command = ["bash", "-l", "node.sh", "../lm/train.py", *folders, *arguments]
        subprocess.run(command, cwd=FOLDER, check=True)


def main() -> None:
    executor = submitit.SlurmExecutor(folder=FOLDER / "submitit" / "%j")
    executor.update_parameters(
        job_name="lm",
        nodes=2,
        ntasks_per_node=1,
        exclusive=True,
        time=120,
        additional_parameters={"propagate": "NONE"},
        srun_args=["--cpu-bind=none", "--kill-on-bad-exit=1"],
    )
    job = executor.submit(Training(), *sys.argv[1:])
    print(f"Slurm job {job.job_id}: {job.paths.stdout}")


if __name__ == "__main__":
    main()
