"""The batch script of a job, for sbatch."""

from collections.abc import Iterator
from math import ceil

from trainium_core.engines.pcs.slurm_settings import GRES_NAME
from trainium_core.plan import Plan
from trainium_wire.job import Job

OUTPUT_FOLDER = "/var/tmp"
"""The folder on the first node for the output of the batch script. The log of the job is in S3."""

_NOTICE_SECONDS = 120
"""Slurm signals the batch script this long before the time limit. Equals NOTICE_SECONDS of trn_slurm.follower."""
_RESULT_MINUTES = 20
"""Time for storing results after the job's time limit, which the first node enforces."""
_WAIT_SECONDS = 60 * _RESULT_MINUTES


def batch_script(plan: Plan, job: Job, *, queue: str) -> str:
    """The script that runs a job of the plan's cluster, on whole nodes.

    If the job has retries, Slurm requeues the script after the loss of a node. While retries remain, the script also
    requeues itself after an interruption, the loss of a node that Slurm has not detected yet, an exit code in
    `retry_on_exit_codes`, or, with `retry_on_hang`, a hang. The programs on the nodes run the job from S3, as on a
    cluster without Slurm.
    """
    options = "\n".join(f"#SBATCH --{option}" for option in _options(plan, job, queue))
    task = "\n".join(f"#     {line}" for line in _node_lines(job))
    return f"""#!/bin/bash
{options}

# The job, its source, log, checkpoints and outputs are in S3. trn-slurm is on every node.
job={job.id}

# srun runs one task for each node. It downloads source, checkpoint and compiled graphs, sets TRN_NODES, TRN_NODE_RANK,
# HEAD_NODE and the folders, distinguishes a hang from a failure, and runs in the source:
{task}
# `follow` begins the attempt, and waits for the tasks. Then it requeues the job, or ends with the exit code of the
# script.
exec trn-slurm follow "$job" srun --cpu-bind=none --kill-on-bad-exit=1 --wait={_WAIT_SECONDS} trn-slurm task "$job"
"""


def _options(plan: Plan, job: Job, queue: str) -> Iterator[str]:
    yield f"job-name={job.id}"
    yield f"partition={queue}"
    yield f"nodes={job.nodes}"
    yield "ntasks-per-node=1"
    yield "exclusive"
    yield f"gres={GRES_NAME}:{plan.type.neuron_devices}"
    # Not --requeue=expedite: Slurm would hold a failed job until its user releases it.
    yield "requeue" if job.retries else "no-requeue"
    if job.time_limit_seconds is not None:
        yield f"time={ceil(job.time_limit_seconds / 60) + _RESULT_MINUTES}"
    yield f"signal=B:USR1@{_NOTICE_SECONDS}"
    # The nodes' process limits apply, not those of the login node.
    yield "propagate=NONE"
    yield f"chdir={OUTPUT_FOLDER}"
    yield f"output={OUTPUT_FOLDER}/%x.out"
    yield "open-mode=append"


def _node_lines(job: Job) -> Iterator[str]:
    yield from (line for text in (job.setup, job.command) if text for line in text.splitlines())
