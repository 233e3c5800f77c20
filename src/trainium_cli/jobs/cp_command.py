"""`trn cp`: files between this machine, the nodes of the cluster, and what jobs have left."""

from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import click

from trainium_cli.cluster_selection import stack_of_cluster, stack_option
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.job_cluster import end, known_job, read_cluster
from trainium_cli.jobs.job_files import download
from trainium_cli.jobs.job_following import follow_job, job_exit_code
from trainium_cli.jobs.job_submission import ready_cluster, submit
from trainium_cli.mistakes import mistake
from trainium_cli.plan_options import context_options, refuse
from trainium_cli.waiting import waiting
from trainium_core.jobs.aws_jobs import AwsJobs
from trainium_core.jobs.copying import Remote, copy_from, copy_to, output_folder, remote
from trainium_core.jobs.follow import JobFollower
from trainium_core.jobs.job import new_job
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import pack_directory
from trainium_core.plan import Plan
from trainium_runtime.errors import UnavailableError

_REMOTE = "WHERE:PATH, where WHERE is a job, a rank, an instance id, or all"


@click.command()
@click.argument("source")
@click.argument("destination")
@context_options
@stack_option
def cp(source: str, destination: str, overrides: tuple[str, ...], cdk_json: Path | None, stack: str | None) -> None:
    """Copy files to nodes, from nodes, or from a job.

    One of the two is on this machine, the other is WHERE:PATH:

    \b
        trn cp train-20261122-190501:outputs results
        trn cp tokens.bin all:/opt/data/
        trn cp 0:/var/log/syslog .

    WHERE is a job, with outputs, checkpoints or attempts/1/logs as PATH; a node, by its rank or instance id; or all
    nodes.

    Through S3, so that it works without any way into the cluster. What a job left is there while the cluster sleeps,
    too. A copy to or from nodes is a small job: it runs as the image's own user, and not beside another job. A PATH
    that is not absolute is in that user's home directory; one that ends with / is a directory.

    Exit code 0: copied. 1: not, or nothing there. 3: could not tell.
    """
    there, here = remote(source), destination
    upload = there is None
    if upload:
        there, here = remote(destination), source
    if there is None or (not upload and remote(destination)) or not (there.path or upload or there.is_job):
        got = f"{source} {destination}"
        fix = "write the path on this machine as ./PATH if it holds a colon"
        raise mistake("SOURCE DESTINATION", got, allowed=f"a path of this machine, and {_REMOTE}", fix=fix)
    if upload and there.is_job:
        allowed = "a rank, an instance id, or all"
        fix = "give data to a job with `trn run --input NAME=PATH`"
        raise mistake("DESTINATION", destination, allowed=f"{allowed}, before the colon", fix=fix)
    if upload and not Path(here).exists():
        raise mistake("SOURCE", here, allowed="a file or directory that exists", fix="give the path of one")
    plan, jobs = read_cluster(cdk_json, overrides, stack, as_json=False)
    if there.is_job:
        job_id = known_job(jobs, there.where, as_json=False).job.id
        _fetch(jobs, job_id, "/".join(PurePosixPath(f"/{there.path}").parts[1:]), Path(here))
        return
    stack = stack_of_cluster(plan, stack)
    rank = _rank(plan, stack, there)
    if upload:
        _run(plan, stack, copy_to(Path(here), there.path, rank))
        click.echo(f"Copied {here} to {destination}.", err=True)
    else:
        job_id = _run(plan, stack, copy_from(there.path, rank))
        _fetch(jobs, job_id, output_folder(there.path, rank), Path(here))


def _rank(plan: Plan, stack: str, there: Remote) -> int | None:
    """The rank of the node that is meant, None for all; ends the command when there is none."""
    try:
        with waiting(f"Asking AWS for the nodes of {stack} ..."):
            members = ready_cluster(plan, stack, as_json=False).members
    except UnavailableError as error:
        end(ExitCode.UNKNOWN, f"Nothing was copied: {error}", as_json=False)
    try:
        return there.rank(members)
    except LookupError:
        allowed = f"all, 0 to {len(members) - 1}, or of {', '.join(members)}"
        raise mistake("WHERE", there.where, allowed=allowed, fix="`trn nodes` shows them") from None


def _run(plan: Plan, stack: str, request: JobRequest) -> str:
    """Run a job that copies, to its end; ends the command where it does not succeed."""
    package = pack_directory(None)
    try:
        job = new_job(plan, request, script=None, now=datetime.now(UTC), source_sha256=package.digest)
    except JobError as error:
        refuse(error, as_json=False)
    jobs = submit(plan, stack, job, package, uploads=request.uploads, as_json=False)
    state = follow_job(JobFollower(job.id, jobs), quiet=True)
    if state is None or state.outcome is None or not state.outcome.is_success:
        raise click.exceptions.Exit(job_exit_code(state))
    return job.id


def _fetch(jobs: AwsJobs, job_id: str, wanted: str, target: Path) -> None:
    try:
        with waiting("Copying from S3 ..."):
            fetched = download(jobs, job_id, wanted, target)
    except UnavailableError as error:
        end(ExitCode.UNKNOWN, f"Could not tell: {error}", as_json=False)
    except OSError as error:
        end(ExitCode.NOT_READY, f"It was not copied: {error}", as_json=False)
    if not fetched:
        there = ", ".join(sorted({name.partition("/")[0] for name in jobs.files(job_id, "")}))
        end(ExitCode.NOT_READY, f"There is no {wanted} in {job_id}; it has: {there}.", as_json=False)
    click.echo(f"Copied {len(fetched)} files to {target}.", err=True)
