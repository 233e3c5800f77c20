"""`trn cp`: copies files between this machine, nodes, and jobs."""

from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import click

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, context_options, pass_invocation
from trainium_cli.jobs.job_engines import JobEngines, asking, engine_options, read_engines
from trainium_cli.jobs.job_files import download
from trainium_cli.jobs.job_following import follow_job, job_exit_code, show_reason
from trainium_cli.jobs.job_submission import nothing_started, submit
from trainium_cli.mistakes import mistake
from trainium_cli.terminal import echo
from trainium_cli.waiting import waiting
from trainium_core.engines.ec2.aws_jobs import ClusterJobs
from trainium_core.jobs.copying import Remote, copy_from, copy_to, output_folder, remote
from trainium_core.jobs.engine import JobEngine
from trainium_core.jobs.follow import JobFollower
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import pack_directory
from trainium_core.plurals import count
from trainium_wire.job_keys import INCOMPLETE_CHECKPOINTS

_REMOTE = "WHERE:PATH, where WHERE is a job ID, a node's rank, an instance ID, or all"


@click.command()
@click.argument("source")
@click.argument("destination")
@click.option("--overwrite", is_flag=True, help="Replace existing files on this machine.")
@engine_options
@context_options
@pass_invocation
def cp(
    invocation: Invocation, source: str, destination: str, overwrite: bool, on: str | None, stack: str | None
) -> ExitCode:
    """Copy files to nodes, from nodes, or from a job.

    One of SOURCE and DESTINATION is a path on this machine, the other is WHERE:PATH:

    \b
        trn cp train-20261122-190501:outputs results
        trn cp tokens.bin all:/scratch/data/
        trn cp 0:/scratch/profile .

    WHERE is a job ID, with a PATH such as outputs, checkpoints or (on a cluster) incomplete-checkpoints or
    attempts/1/logs; the rank or instance ID of a node; or all, for all nodes.

    On this machine files and directories are named as by `cp -r`: in an existing directory they keep their names.
    Existing files are replaced only with --overwrite.

    Copies go through S3, so nodes need no open port, and files of jobs are available while the cluster sleeps. A copy
    to or from nodes is a small job: it runs as the user of jobs, and not while another job runs. That user can write to
    /scratch and to file systems that allow it. PATH is absolute on nodes; one that ends with / is a directory.

    Exit code 0: copied. 1: not copied, or not found. 3: unknown. 4: files of a node did not reach S3.
    """
    there, here = remote(source), destination
    upload = there is None
    if upload:
        there, here = remote(destination), source
    if there is None or (not upload and remote(destination)):
        got = f"{source} {destination}"
        fix = "write the path on this machine as ./PATH if it contains a colon"
        raise mistake("SOURCE DESTINATION", got, allowed=f"a path on this machine, and {_REMOTE}", fix=fix)
    if upload and there.is_job:
        allowed = "a node's rank, an instance ID, or all"
        fix = "pass data to a job with `trn run --input NAME=PATH`"
        raise mistake("DESTINATION", destination, allowed=f"{allowed}, before the colon", fix=fix)
    if upload and not Path(here).exists():
        raise mistake("SOURCE", here, allowed="a file or directory that exists", fix="specify the path of one")
    if not there.is_job and not there.path.startswith("/"):
        fix = "jobs have no home directory on nodes; use /scratch or a file system"
        raise mistake("PATH", there.path, allowed="an absolute path on the node", fix=fix)
    engines = read_engines(invocation, on, stack)
    if there.is_job:
        engine, state = engines.known(there.where)
        _fetch(engine, state.job.id, "/".join(PurePosixPath(f"/{there.path}").parts[1:]), Path(here), overwrite)
        return ExitCode.OK
    cluster = _cluster(engines, there)
    rank = _rank(engines, cluster, there)
    if upload:
        _run(engines, cluster, copy_to(Path(here), there.path, rank))
        echo(f"Copied {here} to {destination}.", err=True)
    else:
        job_id = _run(engines, cluster, copy_from(there.path, rank))
        _fetch(cluster, job_id, output_folder(there.path, rank), Path(here), overwrite)
    return ExitCode.OK


def _cluster(engines: JobEngines, there: Remote) -> ClusterJobs:
    """The jobs of the cluster that has the nodes. Raises UsageError if no engine runs jobs on such a cluster."""
    for engine in engines.engines:
        if engine.key == ClusterJobs.key:
            return ClusterJobs(engines.plan, engine.stack, engines.invocation.clients)
    allowed = f"a job ID: jobs of {engines.engines[0].key} have no nodes to copy to or from"
    raise mistake("WHERE", there.where, allowed=allowed, fix="copy from a job, as JOB:outputs")


def _rank(engines: JobEngines, cluster: ClusterJobs, there: Remote) -> int | None:
    """The rank of the node, None for all. Raises UsageError for an unknown node."""
    with (
        nothing_started(),
        asking(engines.invocation, engines.plan, f"Asking AWS for the nodes of {cluster.stack} ..."),
    ):
        members = cluster.ready().members
    try:
        return there.rank(members)
    except LookupError:
        allowed = f"all, 0 to {len(members) - 1}, or one of {', '.join(members)}"
        raise mistake("WHERE", there.where, allowed=allowed, fix="`trn nodes` shows them") from None


def _run(engines: JobEngines, cluster: ClusterJobs, request: JobRequest) -> str:
    """Run a copy job to its end, and return its ID. Ends the command if the job fails."""
    job = cluster.prepare(request, pack_directory(None), datetime.now(UTC))
    submit(engines.invocation, engines.plan, cluster, job, yes=True, show=False)
    state = follow_job(JobFollower(job.job_id, cluster), quiet=True)
    if state is None or state.outcome is None or not state.outcome.is_success:
        if state is not None:
            show_reason(cluster, state)
        raise click.exceptions.Exit(job_exit_code(state))
    return job.job_id


def _fetch(engine: JobEngine, job_id: str, wanted: str, here: Path, overwrite: bool) -> None:
    target = here / PurePosixPath(wanted or job_id).name if here.is_dir() else here
    try:
        with waiting("Copying from S3 ..."):
            fetched = download(engine.store, job_id, wanted, target, overwrite=overwrite)
    except FileExistsError as error:
        hint = "" if overwrite else ", or pass --overwrite"
        raise CliError(f"Not copied: {error}{hint}", ExitCode.NOT_READY) from error
    except OSError as error:
        raise CliError(f"Not copied: {error}", ExitCode.NOT_READY) from error
    if not fetched and engine.store.files(job_id, wanted):
        raise CliError(f"Nothing was copied to {target}.", ExitCode.NOT_READY)
    if not fetched:
        there = {name.partition("/")[0] for name in engine.store.files(job_id, "")} - {wanted}
        there |= {INCOMPLETE_CHECKPOINTS} if engine.store.files(job_id, INCOMPLETE_CHECKPOINTS) else set()
        shown = ", ".join(sorted(there)) or "nothing"
        raise CliError(f"{job_id} has no {wanted}; it has: {shown}.", ExitCode.NOT_READY)
    echo(f"Copied to {target}: {count(fetched, 'file')}.", err=True)
