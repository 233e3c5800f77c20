"""`trn pilot`: runs other commands of `trn` as the steps of a pilot."""

import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import click

from trainium_cli.evidence.file_mistakes import file_argument, mistakes_listed
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.interruption import finish_before_exit, interrupt_message
from trainium_cli.terminal import console, question, say, table
from trainium_core.costs.estimate import dollars
from trainium_core.evidence.bench_file import bench_jobs, read_bench_file
from trainium_core.evidence.pilot import (
    DONE,
    INTERRUPTED_CODE,
    Outside,
    PilotResult,
    PilotRun,
    PilotState,
    Result,
    StepEnd,
)
from trainium_core.evidence.pilot_file import GPU, TRAINIUM, PilotFile, PilotStep, pilot_steps, read_pilot_file
from trainium_core.jobs.request import job_request, read_job_file
from trainium_core.plan import Plan
from trainium_core.plan.context import plan_from_file

_STATE = "pilot.json"
_CODE = "from trainium_cli.start import main; main()"
_ENDING_SECONDS = 120
"""Seconds after which an interrupted command of a step is killed."""
_JOB_ENDED = (ExitCode.OK, ExitCode.NOT_READY, ExitCode.RESULTS_LOST)
"""Exit codes of `trn logs --follow` if the job is over."""
_EXIT_CODES: dict[Result, ExitCode] = {
    "complete": ExitCode.OK,
    "stopped": ExitCode.NOT_READY,
    "declined": ExitCode.NOT_READY,
    "unknown": ExitCode.UNKNOWN,
    "interrupted": ExitCode.INTERRUPTED,
}
_INTERRUPTED = "Interrupted. A cluster of the pilot may be billed: `trn pilot` continues, `trn destroy` deletes it."


@click.command()
@file_argument("pilot.toml")
@click.option("--dry-run", is_flag=True, help="Show the steps, their commands and their state; run nothing.")
@click.option("--yes", is_flag=True, help="Do not ask before money is spent. For scripts.")
@interrupt_message(_INTERRUPTED)
def pilot(file: Path, dry_run: bool, yes: bool) -> ExitCode:
    """Run a pilot from the assessment of the code to the final audit.

    FILE.toml names the plan, a job or a file of `trn bench`, a budget and the hours for each cluster, and optionally
    the code to assess, a job to observe and a GPU plan of `trn baseline`. The steps are commands of `trn`: assess,
    plan, estimate and preflight, which cost nothing; then deploy, run (with logs) or bench, jobs, nodes, cost, destroy
    and audit; finally report. If the file names a job to observe, the steps run, logs and assess are repeated for it.
    Clusters that run a job are billed one after the other; with `trn bench`, at the same time.

    Asks once before money is spent. A cluster is destroyed after its job, when its hours or the budget are used up,
    when a step fails, and on Ctrl-C. If the command itself is killed, run it again: it continues at the step where it
    stopped. Until then trn:ends limits the cost; a plan without it gets the hours of the file.

    Exit code 0: complete, and no cluster is billed. 1: stopped or declined, or a cluster may still be billed. 2: a file
    or a plan has mistakes. 3: a price or the result of a step is unknown. 130: interrupted.
    """
    spec = _read(file)
    folder = file.absolute().parent
    options = {side: _options(spec, side, folder) for side in spec.sides}
    if dry_run:
        _show_steps(spec, _stored(spec, file), options)
        return ExitCode.OK
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("not a terminal: pass --yes to confirm what is billed")
    state = _stored(spec, file) or PilotState(digest=file_digest(spec, file))
    for part in ("steps", "evidence"):
        (folder / spec.folder / part).mkdir(parents=True, exist_ok=True)
    commands = PilotCommands(spec, state, folder, options, yes=yes)
    outside = Outside(
        run=commands.run, save=commands.save, confirm=commands.confirm, say=say, now=lambda: datetime.now(UTC)
    )
    end = PilotRun(spec, state, outside).run()
    _show_steps(spec, state, options)
    _show_end(spec, state, end, file)
    return ExitCode.NOT_READY if end.left and end.result == "complete" else _EXIT_CODES[end.result]


class PilotCommands:
    """Runs commands of `trn` in the folder of the pilot's file, and stores the state of the pilot."""

    def __init__(
        self, pilot: PilotFile, state: PilotState, folder: Path, options: dict[str, tuple[str, ...]], *, yes: bool
    ) -> None:
        self._pilot, self._state, self._folder, self._options = pilot, state, folder, options
        self._confirmed = yes

    def run(self, step: PilotStep, job: str, seconds: float | None) -> StepEnd:
        lists = {"plan": self._options.get(step.side or TRAINIUM, ()), "grace": self._grace(step.side)}
        words = _words(self._pilot, step, job, lists)
        process = subprocess.Popen(
            [sys.executable, "-c", _CODE, *words],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if step.writes is not None else None,
            text=True,
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            output = _ended(process)
            return StepEnd(exit_code=process.returncode, output=output, late=True)
        except KeyboardInterrupt:
            # The terminal has sent SIGINT to the command as well.
            with finish_before_exit():
                output = _ended(process)
            return StepEnd(exit_code=INTERRUPTED_CODE, output=output)
        return StepEnd(exit_code=process.returncode, output=output or "")

    def _grace(self, side: str) -> tuple[str, ...]:
        """The options that skip the notice to the nodes if all jobs are over, and have nothing to save."""
        steps = self._state.steps
        measured = steps.get("bench", {}).get("state") == DONE
        is_over = measured or steps.get(f"{side} follow", {}).get("exit_code") in _JOB_ENDED
        if f"{side} observe" in steps:
            is_over = is_over and steps.get(f"{side} observe-follow", {}).get("exit_code") in _JOB_ENDED
        return ("--grace", "0") if is_over else ()

    def save(self, state: PilotState, step: PilotStep | None, output: str) -> None:
        """Replace each file as a whole: if the process is killed, or the step has no output, the earlier file stays."""
        place = self._folder / self._pilot.folder
        if step is not None and step.writes and output:
            _replace(place / step.writes, output)
        _replace(place / _STATE, state.to_json())

    def confirm(self) -> bool:
        if not self._confirmed:
            rows = [
                (side, _usd(hourly), f"{self._pilot.hours} h", _usd(hourly * self._pilot.hours))
                for side, hourly in self._state.hourly.items()
            ]
            console().print(table(["Cluster", "Per hour", "At most", "Cost"], rows, right=["Per hour", "Cost"]))
            say(f"Budget: {_usd(self._pilot.budget_usd)}. List prices, before tax and discounts.")
            self._confirmed = click.confirm(question("\nDeploy and run?"))
        return self._confirmed


def _ended(process: "subprocess.Popen[str]") -> str:
    try:
        output, _ = process.communicate(timeout=_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    return output or ""


def _usd(amount: float) -> str:
    return dollars(Decimal(str(amount)))


def _words(pilot: PilotFile, step: PilotStep, job: str, lists: Mapping[str, Sequence[str]]) -> list[str]:
    """The arguments of `trn`.

    Args:
        pilot: The pilot.
        step: The step.
        job: ID of the step's job.
        lists: The arguments that replace a placeholder, by its name.
    """
    values = {
        "code": pilot.code or "",
        "fail_on": pilot.fail_on,
        "hours": str(pilot.hours),
        "job_file": pilot.job or "",
        "bench": pilot.bench or "",
        "observe": pilot.observe or "",
        "job": job,
        "folder": pilot.folder,
    }
    words: list[str] = []
    for argument in step.arguments:
        words += lists[argument[1:-1]] if argument[1:-1] in lists else [argument.format(**values)]
    return words


def _replace(file: Path, text: str) -> None:
    new = file.with_name(f".{file.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(file)


def _read(file: Path) -> PilotFile:
    """Read the pilot's file. Also checks its job files and its file of `trn bench`, before anything is billed.

    Raises:
        CliError: The pilot's file or the file of `trn bench` has mistakes.
        JobError: A job file has mistakes.
    """
    with mistakes_listed(file):
        spec = read_pilot_file(file.read_text(encoding="utf-8"), file.absolute().parent)
    for name in (spec.job, spec.observe):
        if name is not None:
            job_request(read_job_file(file.parent / name))
    if spec.bench is not None:
        bench = file.parent / spec.bench
        with mistakes_listed(bench):
            bench_jobs(read_bench_file(bench.read_bytes(), bench))
    return spec


def _options(pilot: PilotFile, side: str, folder: Path) -> tuple[str, ...]:
    """The options that name the cluster of a side.

    Raises:
        CliError: The instance type does not fit the side, or both sides have the same cluster.
        PlanError: The plan is not valid.
    """
    plan = _plan(pilot, side, folder)
    if plan.type.is_gpu != (side == GPU):
        kind = "not a GPU type" if side == GPU else "a GPU type"
        raise CliError(f"The plan of the {side} side has {plan.instance_type}, which is {kind}.", ExitCode.BAD_INPUT)
    if side == GPU:
        other = next(_plan(pilot, side, folder) for side in pilot.sides if side != GPU)
        if (plan.cluster_name, plan.region) == (other.cluster_name, other.region):
            raise CliError(
                f"Both sides have the cluster {plan.cluster_name}: set different trn:cluster_name.",
                ExitCode.BAD_INPUT,
            )
    named = ("--file", pilot.sides[side])
    if plan.pilot.ends is not None:
        return named
    return (*named, "-c", f"trn:ends={pilot.hours}h", "-c", "trn:ends_action=destroy")


def _plan(pilot: PilotFile, side: str, folder: Path) -> Plan:
    return plan_from_file(folder / pilot.sides[side], ())


def file_digest(pilot: PilotFile, file: Path) -> str:
    """The digest of the pilot's file, and of the plans, job files and bench file that it names."""
    digest = sha256()
    named = (*pilot.sides.values(), pilot.job, pilot.bench, pilot.observe)
    for path in (file, *(file.parent / name for name in named if name)):
        digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _stored(pilot: PilotFile, file: Path) -> PilotState | None:
    """The state of an earlier run, if any.

    Raises:
        CliError: The state is not valid, or the files have changed since.
    """
    stored = file.absolute().parent / pilot.folder / _STATE
    if not stored.exists():
        return None
    try:
        state = PilotState.from_json(stored.read_text(encoding="utf-8"))
    except (ValueError, LookupError, TypeError) as error:
        fix = f"run `trn destroy` for clusters that it deployed, then set another folder in {file}"
        raise CliError(f"{stored} is not the state of a pilot: {error}: {fix}.", ExitCode.BAD_INPUT) from error
    if state.digest != file_digest(pilot, file):
        billed = [side for side in pilot.sides if state.is_billed(side)]
        first = f"run `trn destroy` for {' and '.join(billed)}, then " if billed else ""
        changed = f"{file}, or a plan, job file or bench file that it names, has changed since {stored} was written"
        message = f"{changed}: {first}set another folder in {file}."
        raise CliError(message, ExitCode.BAD_INPUT)
    return state


def _show_steps(pilot: PilotFile, state: PilotState | None, options: dict[str, tuple[str, ...]]) -> None:
    rows: list[tuple[str, str, str]] = []
    for step in pilot_steps(pilot):
        words = _words(pilot, step, "JOB", {"plan": options[step.side or TRAINIUM], "grace": ()})
        rows.append((step.key, _pilot_state(step, state), f"trn {shlex.join(words)}"))
    console().print(table(["Step", "State", "Command"], rows, wrapping=["Command"]))


def _pilot_state(step: PilotStep, state: PilotState | None) -> str:
    stored = state.steps.get(step.key) if state else None
    if stored is None:
        return ""
    code = f" ({stored['exit_code']})" if stored.get("exit_code") else ""
    return f"{stored['state']}{code}"


def _show_end(pilot: PilotFile, state: PilotState, end: PilotResult, file: Path) -> None:
    spent = _usd(round(state.spent(datetime.now(UTC)), 2))
    say(f"\nSpent, by the estimate: {spent} of {_usd(pilot.budget_usd)}. Evidence: {file.parent / pilot.folder}")
    if end.why:
        say(f"Stopped: {end.why}.")
    if end.left:
        say(f"May still be billed: the cluster of the {' and the '.join(end.left)} side. Run `trn pilot {file}` again.")
    else:
        say("No cluster of the pilot is billed.")
    if end.result not in ("complete", "declined") and not end.left:
        say(f"To continue: trn pilot {file}")
