"""`trn run`: packs a training script, starts it, and follows it to its result."""

import sys
import time
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from trainium_cli.cluster.sleep_switching import switch
from trainium_cli.exit_codes import ExitCode
from trainium_cli.interruption import interrupt_message
from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.jobs.job_engines import asking, new_job_options, read_engine
from trainium_cli.jobs.job_files import fetch_outputs
from trainium_cli.jobs.job_following import job_exit_code
from trainium_cli.jobs.job_options import keys_as_given, packed_source, read_request, work_options
from trainium_cli.jobs.job_report import report_source
from trainium_cli.jobs.job_submission import nothing_started, submit_and_follow
from trainium_cli.lazy_group import CommandWithSections
from trainium_cli.terminal import echo, echo_verbatim, print_json, say
from trainium_core.jobs.engine import JobEngine, NoStackError, PreparedJob, check_keys
from trainium_core.plan import Plan
from trainium_runtime.errors import UnavailableError
from trainium_wire.job import RESULTS_LOST

_SECTIONS = {
    "What runs": ("source", "name", "nodes", "setup", "environment", "secrets", "inputs", "outputs"),
    "Options": (),
    "Checkpoints and restarts": (
        "checkpoints",
        "resume",
        "retries",
        "retry_on_exit_codes",
        "hang_minutes",
        "time_limit_minutes",
    ),
    "Measurements": ("observe", "profile", "profile_device"),
    "Where it runs": ("on", "cluster", "region", "stack", "overrides", "cdk_json"),
    "Slurm, SageMaker and EKS": ("queue", "priority"),
    "SageMaker only": ("training_plan", "spot_wait_minutes", "warm_pool_minutes", "upload"),
}


@click.command(cls=CommandWithSections, sections=_SECTIONS)
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@work_options(source_default="only the script")
@click.option("--checkpoints", metavar="S3URL", help="S3 folder for checkpoints. Default: trn:job_checkpoints.")
@click.option(
    "--retries",
    metavar="NUMBER",
    help="Maximum number of restarts without progress, after a lost node, a hang or certain exit codes. Default: 2.",
)
@click.option(
    "--retry-on-exit-code",
    "retry_on_exit_codes",
    multiple=True,
    metavar="CODE",
    help="Exit code of the script that also causes a restart. Can be repeated.",
)
@click.option(
    "--hang-minutes",
    metavar="MINUTES",
    help="Minutes without output and without a running compiler after which the job counts as hung. Default: never.",
)
@click.option(
    "--time-limit-minutes",
    metavar="MINUTES",
    help="Time limit in minutes, including restarts. Default: none; on SageMaker trn:sagemaker_max_runtime_hours.",
)
@click.option(
    "--queue",
    metavar="NAME",
    help="Queue of the job. Default: the first of trn:pcs_queues, the queue of the SageMaker stack, or on EKS none.",
)
@click.option("--priority", metavar="NUMBER", help="In a queue, jobs with a higher priority start first. Default: 0.")
@click.option("--resume", metavar="JOB", help="Continue from the last checkpoint of an earlier job.")
@click.option("--training-plan", metavar="ARN", help="SageMaker: run in a training plan.")
@click.option(
    "--spot-wait-minutes",
    metavar="MINUTES",
    help="SageMaker: minutes to wait for spot capacity. Default: as long as the time limit.",
)
@click.option(
    "--warm-pool-minutes", metavar="MINUTES", help="SageMaker: minutes to keep the instances, billed, for the next job."
)
@click.option(
    "--observe",
    is_flag=True,
    default=None,
    help="Report counters of the frameworks: operators on the CPU, recompilations, compiler errors. Not for timing.",
)
@click.option(
    "--profile",
    metavar="RANKS",
    help="Ranks, such as 0 or 0,32, that the Neuron runtime profiles into the job's outputs. Not for timing.",
)
@click.option("--profile-device", is_flag=True, default=None, help="With --profile: traces of the devices too.")
@click.option("--outputs", type=click.Path(path_type=Path), help="Fetch the job's outputs into PATH/JOB when it ends.")
@click.option("--wake", is_flag=True, help="Wake the cluster first, and put it to sleep when the job ends.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what each node would execute, the batch script for Slurm, the request to SageMaker or the Kubernetes "
    "objects for EKS; start nothing.",
)
@click.option(
    "--upload", is_flag=True, help="SageMaker and EKS, with --dry-run: upload the source, which the request uses."
)
@click.option("--detach", is_flag=True, help="Do not follow the job.")
@click.option(
    "--yes", is_flag=True, help="Do not ask for confirmation before waking the cluster or starting billed jobs."
)
@new_job_options
@plan_options
@pass_invocation
def run(
    invocation: Invocation,
    script: Path,
    arguments: tuple[str, ...],
    on: str | None,
    stack: str | None,
    outputs: Path | None,
    wake: bool,
    dry_run: bool,
    upload: bool,
    detach: bool,
    yes: bool,
    **options: Any,
) -> ExitCode:
    """Run a training script on every node, and follow it to its result.

    SCRIPT is a path relative to --source or to the working directory. It runs under torchrun with one process for each
    logical NeuronCore or GPU of each node, and gets the arguments after --:

        trn run train.py --source . -- --epochs 3

    A SCRIPT that ends in .toml is a job file, whose keys are these options and a few others; options on the command
    line take precedence.

    --on sagemaker submits a SageMaker training job to a queue of AWS Batch, after confirmation because it is billed
    from its start. --on slurm submits the job on the login node of PcsStack. Jobs wait in the queue until instances or
    nodes are available. --on eks submits a JobSet to an existing EKS cluster, with your kubectl.

    A cluster without Slurm runs one job at a time. The job keeps running when this command ends, also after Ctrl-C.
    Unless trn:node_recovery is off, a lost node is replaced, and the job continues from its last checkpoint, at most
    --retries times.

    Exit code 0: the job succeeded, or was started with --detach. 1: the job did not succeed, or was not started. 3:
    unknown. 4: every process ended with 0, but checkpoints or outputs did not reach S3 (results-lost). 130: left
    running by Ctrl-C. A failure to fetch --outputs does not change the exit code.
    """
    if wake and detach:
        raise click.UsageError("--wake puts the cluster to sleep when the job has ended: omit --detach")
    if upload and not dry_run:
        raise click.UsageError("--upload requires --dry-run: starting a job uploads its source")
    given = {"on": on, "outputs": None if outputs is None else str(outputs), **options}
    request, values, shown = read_request(script, arguments, given)
    outputs = None if request.outputs is None else Path(request.outputs)
    plan, engine = read_engine(invocation, request.on, stack)
    flags = {"wake": wake, "upload": upload}
    check_keys(engine, {**values, **flags}, {**shown, **{name: f"--{name}" for name in flags}})
    if engine.bills_jobs or wake:
        invocation.require_yes(yes or dry_run)
    with keys_as_given(shown), asking(invocation, plan, "Packing the source ..."):
        job = engine.prepare(request, packed_source(request), datetime.now(UTC))
    report_source(invocation, plan, engine, request.setup, job)
    if dry_run:
        if upload:
            with nothing_started(), asking(invocation, plan, "Uploading ..."):
                notes = job.upload()
            for text in notes:
                echo(text, err=True)
        print_json(job.as_json) if invocation.as_json else echo_verbatim(job.as_text)
        return ExitCode.OK
    if not wake:
        return _run(invocation, plan, engine, job, detach=detach, yes=yes, outputs=outputs)
    with nothing_started(), asking(invocation, plan, "Looking for the checkpoint ..."):
        for text in job.find_checkpoint():
            echo(text, err=True)
    return _run_awake(invocation, plan, engine, job, yes=yes, outputs=outputs)


def _run(
    invocation: Invocation,
    plan: Plan,
    engine: JobEngine,
    job: PreparedJob,
    *,
    detach: bool,
    yes: bool,
    outputs: Path | None,
) -> ExitCode:
    state = submit_and_follow(invocation, plan, engine, job, detach=detach, yes=yes)
    if outputs is not None and state is not None:
        fetch_outputs(engine.store, job.job_id, outputs)
    return ExitCode.OK if detach else job_exit_code(state)


def _beside_json(invocation: Invocation) -> AbstractContextManager[object]:
    """With --json, prints of this block go to standard error, because standard output is for the state of the job."""
    return redirect_stdout(sys.stderr) if invocation.as_json else nullcontext()


def _run_awake(
    invocation: Invocation,
    plan: Plan,
    engine: JobEngine,
    job: PreparedJob,
    *,
    yes: bool,
    outputs: Path | None,
) -> ExitCode:
    """Wake the cluster, run the job, and put the cluster to sleep."""
    begun = time.monotonic()
    with _beside_json(invocation):
        say(switch(invocation, engine.stack, "awake", yes=yes))
    job.started_after_waking(round(time.monotonic() - begun, 1))
    awake = f"Interrupted: {plan.cluster_name} is awake, and billed. `trn sleep` puts it to sleep."
    try:
        with interrupt_message(awake):
            return _run(invocation, plan, engine, job, detach=False, yes=yes, outputs=outputs)
    finally:
        # Also if the job was not started. A job that keeps running must keep its nodes.
        _sleep_unless_running(invocation, plan, engine)


def _sleep_unless_running(invocation: Invocation, plan: Plan, engine: JobEngine) -> None:
    awake = f"{plan.cluster_name} stays awake and is billed"
    try:
        state = engine.last()
    except NoStackError:
        state = None
    except UnavailableError as error:
        echo(f"{awake}: unknown whether a job is running: {error}", err=True)
        return
    if state is not None and not state.is_over:
        echo(f"{awake}: {state.job.id} keeps running. Put it to sleep with `trn sleep`.", err=True)
    elif state is not None and state.outcome is not None and state.outcome.result == RESULTS_LOST:
        message = (
            f"{awake}: unstored results of {state.job.id} are only on its nodes. Download them with "
            "`trn cp RANK:FOLDER .`, then put the cluster to sleep with `trn sleep`."
        )
        echo(message, err=True)
    else:
        with _beside_json(invocation):
            say(switch(invocation, engine.stack, "asleep", yes=True))
