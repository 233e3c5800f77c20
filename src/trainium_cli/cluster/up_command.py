"""`trn up`: from a script to its results, as a sequence of other commands."""

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from trainium_cli.cdk_program import tool_path
from trainium_cli.cluster.deploy_command import deploy_plan
from trainium_cli.cluster.deployment import cdk_folder, is_interactive
from trainium_cli.cluster.down_command import take_down
from trainium_cli.cluster.sleep_switching import switch
from trainium_cli.completion_values import complete_region, complete_type
from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation, context_options, pass_invocation
from trainium_cli.jobs.job_engines import asking, read_engine
from trainium_cli.jobs.job_files import fetch_results
from trainium_cli.jobs.job_following import job_exit_code
from trainium_cli.jobs.job_options import JOB_FILE, keys_as_given, packed_source, read_request, work_options
from trainium_cli.jobs.job_report import report_source
from trainium_cli.jobs.job_submission import submit_and_follow
from trainium_cli.plan.plan_report import pilot_end_text
from trainium_cli.setup.init_command import new_plan, write_project
from trainium_cli.terminal import console, echo, pairs, say
from trainium_cli.waiting import waiting
from trainium_core.assess.assessment import assess
from trainium_core.assess.rules import STACKS, Severity
from trainium_core.aws.prices import AwsPrices
from trainium_core.clusters.aws_account import AwsClustersAccount
from trainium_core.costs.estimate import estimate
from trainium_core.jobs.aws_job_files import CHECKPOINTS
from trainium_core.jobs.engine import JobEngine, NoStackError, PreparedJob, check_keys
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.plan import Plan
from trainium_core.plan.context import settings_given
from trainium_core.plan.deployed_plan import is_recorded, recorded_settings
from trainium_wire.job_keys import INCOMPLETE_CHECKPOINTS, OUTPUTS
from trainium_wire.stack_record import StackRecord

_RESULTS = "trn-results"
_NEW_PLAN = {"instance_type": "--type", "region": "--region", "ends": "--ends"}
"""The options for a new plan, by setting."""


@click.command()
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--type",
    "instance_type",
    metavar="TYPE",
    shell_complete=complete_type,
    help="Instance type of every node of a new plan, see `trn types`.",
)
@click.option("--region", metavar="REGION", shell_complete=complete_region, help="AWS region of a new plan.")
@click.option("--ends", metavar="WHEN", help="When the nodes of a new plan are terminated: 8h, 5d, or a time.")
@work_options(source_default="the working directory")
@click.option(
    "--outputs",
    metavar="DIRECTORY",
    help=f"Where to fetch the results, into DIRECTORY/JOB. Default: that of the job file, else {_RESULTS}.",
)
@click.option("--down", is_flag=True, help="Fetch the checkpoints too, and then destroy the cluster.")
@click.option("--yes", is_flag=True, help="Do not prompt: take the proposed plan, and confirm everything.")
@context_options
@pass_invocation
def up(
    invocation: Invocation, script: Path, arguments: tuple[str, ...], down: bool, yes: bool, **options: Any
) -> ExitCode:
    """Deploy what a script needs, run the script, and fetch its results.

    SCRIPT and the arguments after -- are those of `trn run`. Without cdk.json, this writes a plan and a CDK app
    (`trn init`). Then it checks the account, shows what will exist, for how long and at what price, asks once, runs
    `cdk bootstrap` if that is missing, deploys (`trn deploy`), runs and follows the job (`trn run`), and fetches its
    outputs. The next time, only the job runs, unless the plan has changed.

    --down destroys the cluster after the job (`trn down`), once all outputs and checkpoints are in the local
    folder. Otherwise the cluster stays.

    Exit code 0: the job succeeded and its results were fetched; with --down, nothing is left. Otherwise that of the
    step that failed, see `trn deploy`, `trn run` and `trn down`; 3 also if results were not fetched.
    """
    if not yes and not is_interactive():
        raise click.UsageError("not a terminal: pass --yes to confirm")
    new = {key: options.pop(key) for key in _NEW_PLAN}
    if script.suffix != JOB_FILE and options["source"] is None:
        options["source"] = "."
    work = _read_work(script, arguments, options)
    _write_plan(invocation, {**new, "nodes": options["nodes"]}, prompts=not yes)
    plan = invocation.plan()
    _check(invocation, plan, work)
    code = _deploy(invocation, plan, yes=yes)
    if code is not ExitCode.OK:
        return code
    plan, engine, job = _prepare(invocation, work)
    state = submit_and_follow(invocation, plan, engine, job, detach=False, yes=yes)
    code = job_exit_code(state)
    kinds = (OUTPUTS, CHECKPOINTS, INCOMPLETE_CHECKPOINTS) if down else (OUTPUTS,)
    lacking = fetch_results(engine.store, job.job_id, Path(work.request.outputs or _RESULTS), kinds)
    for problem in lacking:
        echo(f"Not fetched: {problem}", err=True)
    if not down:
        _show_cluster(invocation, plan)
        return code or (ExitCode.UNKNOWN if lacking else ExitCode.OK)
    is_stored = code in (ExitCode.OK, ExitCode.NOT_READY) and not lacking
    if not is_stored and (yes or not click.confirm("Destroy the cluster although results are missing?")):
        _show_cluster(invocation, plan, "Not destroyed: not all results are in the local folder.")
        return code or ExitCode.UNKNOWN
    return take_down(invocation, grace=timedelta(), yes=True) or code


@dataclass(frozen=True, kw_only=True)
class _Work:
    """What the options say about the job, before it is known where it runs."""

    request: JobRequest
    package: SourcePackage
    values: Mapping[str, Any]
    shown: Mapping[str, str]


def _read_work(script: Path, arguments: tuple[str, ...], options: Mapping[str, Any]) -> _Work:
    """Raises JobError."""
    request, values, shown = read_request(script, arguments, options)
    if request.outputs is None:
        request = replace(request, outputs=_RESULTS)
    with keys_as_given(shown), waiting("Packing the source ..."):
        return _Work(request=request, package=packed_source(request), values=values, shown=shown)


def _write_plan(invocation: Invocation, answers: Mapping[str, str | None], *, prompts: bool) -> None:
    """Write a plan and a CDK app unless the folder has a plan. Raises UsageError if options contradict the plan."""
    if settings_given(invocation.cdk_json, ()):
        for key, option in _NEW_PLAN.items():
            if answers[key] is not None:
                fix = f"change trn:{key} in cdk.json, or pass -c trn:{key}={answers[key]}"
                raise click.UsageError(f"{option} is for a new plan, and cdk.json has one: {fix}")
        return
    folder = cdk_folder(invocation.cdk_json, may_be_missing=True)
    if (folder / "cdk.json").exists():
        raise click.UsageError("cdk.json is that of another app: it has no trn: settings. Use another folder.")
    settings, plan = new_plan(folder, {"capacity": None, "reservation_id": None, **answers}, prompts=prompts)
    say(f"Written: {', '.join(write_project(folder, settings))}. The cluster is named {plan.cluster_name}.")


def _check(invocation: Invocation, plan: Plan, work: _Work) -> None:
    """Check the job against the plan, before anything is billed. Raises JobError and UsageError."""
    runs_here = not invocation.reaches_aws(plan.region)
    if runs_here and work.request.script is not None and shutil.which("torchrun", path=tool_path()) is None:
        fix = "install it with `pip install torch` in the environment of trn"
        raise click.UsageError(f"with `trn local`, the script runs on this machine, which has no torchrun: {fix}")
    try:
        _, engine, job = _prepare(invocation, work)
    except NoStackError:
        return  # this engine's jobs can be checked only after the deployment
    report_source(invocation, plan, engine, work.request.setup, job)
    stack = plan.framework.stack if plan.framework else ""
    if not plan.type.is_gpu and stack in STACKS and work.request.script is not None:
        code = Path(work.request.source or work.request.script)
        with waiting(f"Reading the code in {code} ..."):
            assessment = assess([code])
        if assessment.worst((stack,)) >= Severity.change:
            echo(
                f"warning: {assessment.verdict(stack)}. `trn assess {shlex.quote(str(code))}` shows the places.",
                err=True,
            )


def _prepare(invocation: Invocation, work: _Work) -> tuple[Plan, JobEngine, PreparedJob]:
    plan, engine = read_engine(invocation, work.request.on, None)
    check_keys(engine, work.values, work.shown)
    with keys_as_given(work.shown), asking(invocation, plan, "Preparing the job ..."):
        return plan, engine, engine.prepare(work.request, work.package, datetime.now(UTC))


def _deploy(invocation: Invocation, plan: Plan, *, yes: bool) -> ExitCode:
    """Deploy the plan unless it is deployed, or wake its cluster."""
    account = AwsClustersAccount(plan.region, clients=invocation.clients, by_tag=False)
    with waiting(f"Looking for {plan.cluster_name} in {plan.region} ..."):
        records = {r.engine: r for r in account.records().readable if r.cluster == plan.cluster_name}
        stacks = [stack for stack in account.cluster_stacks().stacks if stack.cluster == plan.cluster_name]
    is_current = all(key in records and _is_as_planned(records[key], plan) for key in plan.stacks)
    if is_current and stacks and all(stack.is_steady for stack in stacks):
        if any(stack.asleep for stack in stacks):
            say(switch(invocation, None, "awake", yes=yes))
        return ExitCode.OK
    code = deploy_plan(invocation, plan, cdk_folder(invocation.cdk_json), yes=yes, bootstraps=True)
    account.records(again=True)
    return code


def _is_as_planned(record: StackRecord, plan: Plan) -> bool:
    """Whether a stack was deployed with the settings of the plan. Files of the app and the package may have changed."""
    recorded = {key: value for key, value in record.settings.items() if is_recorded(key, record.engine)}
    return recorded == recorded_settings(plan, record.engine)


def _show_cluster(invocation: Invocation, plan: Plan, what: str = "") -> None:
    """Show the price and the end of the cluster, which stays."""
    hour = estimate(plan, aws=AwsPrices(plan.region)).running_hour
    say(f"\n{what}".rstrip())
    billed = f"is billed: {hour} per hour"
    if not invocation.reaches_aws(plan.region):
        billed = f"is in the embedded AWS, and costs nothing; on AWS, {hour} per hour"
    rows = [("Cluster", f"{plan.cluster_name} {billed}"), ("End", pilot_end_text(plan))]
    console().print(pairs(rows))
    echo("Next: `trn up SCRIPT` runs a job, `trn down` destroys the cluster.")
