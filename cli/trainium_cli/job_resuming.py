"""Which checkpoint a job goes on from that resumes an earlier one."""

from dataclasses import replace

import click

from trainium_cli.plan_options import refuse
from trainium_core.jobs.aws_jobs import AwsJobs
from trainium_core.jobs.job import Job
from trainium_core.jobs.problems import JobError, JobProblem


def resumed(job: Job, jobs: AwsJobs, *, as_json: bool) -> Job:
    """The job with the id of the one whose checkpoint it goes on from: an earlier one, if what it resumes saved none.

    Ends the command where there is no checkpoint, or one of another number of processes. Raises UnavailableError.
    """
    earlier = job.resume_from
    if earlier is None:
        return job
    owner, checkpoints = jobs.resumable(earlier, job.checkpoints)
    if not checkpoints:
        known = jobs.job_ids()
        there = "has no whole checkpoint" if earlier in known else "is no job of this cluster"
        where = f" in {job.checkpoints}" if job.checkpoints else ""
        problem = JobProblem(
            key="--resume",
            got=earlier,
            allowed=", ".join(sorted(known)) or "none: the cluster knows no job",
            fix=f"{earlier} {there}{where}: leave --resume out, or name another",
        )
        refuse(JobError([problem]), as_json=as_json)
    saved_by, wanted = jobs.world_size(owner, checkpoints[-1], job.checkpoints), job.nodes * job.processes_per_node
    if saved_by not in (None, wanted):
        problem = JobProblem(
            key="--resume",
            got=f"{owner}, whose checkpoint {checkpoints[-1]} was saved by {saved_by} processes",
            allowed=f"a checkpoint of {wanted} processes, as many as this job has",
            fix="run it with as many, or convert the checkpoint",
        )
        refuse(JobError([problem]), as_json=as_json)
    if owner != earlier:
        click.echo(f"{earlier} saved no checkpoint: {job.id} goes on from {checkpoints[-1]} of {owner}.", err=True)
    return replace(job, resume_from=owner)
