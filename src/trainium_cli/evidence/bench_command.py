"""`trn bench`: run the same workload on each side, several times, and write what was measured."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from trainium_cli.evidence.bench_text import show_records
from trainium_cli.evidence.file_mistakes import mistakes_listed
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.jobs.job_engines import asking, read_engine
from trainium_cli.jobs.job_files import download
from trainium_cli.jobs.job_following import follow_job, show_explanation
from trainium_cli.jobs.job_options import packed_source
from trainium_cli.jobs.job_submission import submit
from trainium_cli.terminal import echo, print_json, question
from trainium_core.evidence.bench import MeasuredRun, RecoveredJob, SidePrices, measured_run, side_record, with_ratios
from trainium_core.evidence.bench_file import BenchFile, BenchSide, bench_jobs, read_bench_file, seeded
from trainium_core.evidence.fidelity import FidelityError, logits_fidelity, loss_fidelity
from trainium_core.evidence.imports import Imported, ImportFileError, read_results
from trainium_core.evidence.record import (
    CPU,
    GPU,
    LAB,
    LAB_PREFIX,
    NOT_MEASURED,
    NOT_MET,
    TRAINIUM,
    Fidelity,
    Hardware,
    Record,
    Software,
    Tool,
    record_text,
)
from trainium_core.evidence.steps import steps_of
from trainium_core.jobs.engine import JobEngine, check_keys
from trainium_core.jobs.follow import JobFollower, LogLine
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest, job_request, read_job_file
from trainium_core.nodes.aws_termination import AwsNodeTermination
from trainium_core.plan import Plan
from trainium_core.prices.aws_prices import AwsPrices
from trainium_core.prices.file import snapshot_prices
from trainium_core.prices.price import ON_DEMAND, PricedItem
from trainium_core.prices.quotes import quotes
from trainium_runtime.aws_service import is_aws
from trainium_runtime.errors import RequestRefusedError
from trainium_wire.formats import moment

_NO_PRICE_OF_LAB = "the lab's machines have no price"


@dataclass
class _Side:
    """A side with the engine that runs its jobs, and its runs so far."""

    side: BenchSide
    plan: Plan
    engine: JobEngine
    invocation: Invocation
    states: list[JobState] = field(default_factory=list[JobState])
    runs: list[MeasuredRun] = field(default_factory=list[MeasuredRun])
    recovered: list[RecoveredJob] = field(default_factory=list[RecoveredJob])
    fidelity: list[Fidelity] = field(default_factory=list[Fidelity])
    warnings: list[str] = field(default_factory=list[str])

    @property
    def of_side(self) -> str:
        endpoint = self.invocation.clients.client("s3", self.plan.region).meta.endpoint_url
        if not is_aws(endpoint):
            return LAB
        return GPU if self.plan.type.is_gpu else TRAINIUM if self.plan.type.neuron_devices else CPU


@click.command()
@click.argument("file", metavar="FILE.toml", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("evidence"),
    help="Folder of the records. Default: evidence.",
)
@click.option(
    "--recovery",
    "recovered",
    multiple=True,
    metavar="SIDE=JOB",
    help="A job of this side that lost a node: its restarts measure the recovery time. Can be repeated.",
)
@click.option("--yes", is_flag=True, help="Do not ask before starting billed jobs and terminating nodes.")
@plan_options
@pass_invocation
def bench(invocation: Invocation, file: Path, output: Path, recovered: tuple[str, ...], yes: bool) -> ExitCode:
    """Measure the same workload on each side, and write a record of each.

    FILE.toml names a job file per side, the seeds of the runs, and gates, which are limits of metrics. The gates are
    fixed before the first run: each record contains the file's SHA-256. Each side runs one job per seed. Results of
    finished runs are kept: if the command is interrupted, run it again to continue.

    A side with `recovery = true` runs one more job, of which a node is terminated, after confirmation.

    The warm-up ends when graphs are no longer compiled or loaded. A ratio of two sides is shown only if their workloads
    are comparable. Numbers from the embedded AWS and the lab are labelled as lab numbers.

    Exit code 0: every gate is met. 1: a gate is not met, or a job failed. 3: a gate was not measured.
    """
    spec, requests = _read(file)
    sides = [_side(invocation, one, requests[one.name]) for one in spec.sides]
    if invocation.as_json and not yes and any(one.engine.bills_jobs or one.side.recovery for one in sides):
        raise click.UsageError("--json does not prompt: pass --yes as well")
    if not yes:
        _confirm_losses(sides)
    for given in recovered:
        _add_recovered(sides, given)
    journal = _Journal.open(output, spec, file)
    with TemporaryDirectory() as scratch:
        for side in sides:
            for seed in spec.seeds:
                _measure(side, spec, seed, journal, Path(scratch), yes=yes)
        _compare_losses(sides, spec)
    for side in sides:
        if side.side.recovery:
            _measure_recovery(side, spec, journal, yes=yes)
    records = with_ratios(
        [_record(side, spec) for side in sides],
        {f"{spec.name}-{side.side.name}": side.runs for side in sides},
    )
    for record in records:
        (output / f"{record.id}.json").write_text(record_text(record), encoding="utf-8")
    if invocation.as_json:
        print_json({"records": [json.loads(record_text(record)) for record in records]})
    else:
        show_records(records, output)
    return _exit_code(records)


def _read(file: Path) -> tuple[BenchFile, Mapping[str, JobRequest]]:
    with mistakes_listed(file):
        spec = read_bench_file(file.read_bytes(), file)
        return spec, bench_jobs(spec)


def _side(invocation: Invocation, side: BenchSide, request: JobRequest) -> _Side:
    """Raises JobError for a side whose nodes cannot be terminated, and what reading a plan raises."""
    own = replace(invocation, cdk_json=side.plan) if side.plan else invocation
    plan, engine = read_engine(own, request.on, None)
    check_keys(engine, {"recovery": side.recovery}, {"recovery": f"sides.{side.name}.recovery"})
    return _Side(side=side, plan=plan, engine=engine, invocation=own)


def _add_recovered(sides: Sequence[_Side], given: str) -> None:
    name, _, job_id = given.partition("=")
    side = next((one for one in sides if one.side.name == name), None)
    if side is None or not job_id:
        names = ", ".join(one.side.name for one in sides)
        raise click.UsageError(f"--recovery {given}: use SIDE=JOB with a side of the file: {names}")
    with asking(side.invocation, side.plan, "Asking AWS for the job that lost a node ..."):
        state = side.engine.state(job_id, every_node=True)
    if state is None or len(state.attempts) < 2:
        raise CliError(f"{job_id} is not a job of {name} that was restarted.", ExitCode.NOT_READY)
    side.recovered.append(RecoveredJob(state=state))


def _confirm_losses(sides: Sequence[_Side]) -> None:
    """Raises click.Abort if the user declines."""
    clusters = " and of ".join(one.plan.cluster_name for one in sides if one.side.recovery)
    if clusters:
        text = f"After the runs, a node of {clusters} is terminated while one more job runs. Continue?"
        click.confirm(question(text), abort=True)


@dataclass
class _Journal:
    """Which job ran which seed, so that an interrupted command continues. Also proves that the gates came first.

    Attributes:
        lost: When a node of a job was terminated, by the job's ID.
    """

    path: Path
    digest: str
    jobs: dict[str, str]
    lost: dict[str, str]

    @classmethod
    def open(cls, output: Path, spec: BenchFile, file: Path) -> "_Journal":
        output.mkdir(parents=True, exist_ok=True)
        path = output / f"{spec.name}.runs"
        found = cls(path, spec.source.sha256, {}, {})
        if path.exists():
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                found.jobs = {str(name): str(job) for name, job in content["jobs"].items()}
                found.lost = {str(job): str(at) for job, at in content["lost"].items()}
                earlier = content["sha256"]
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise CliError(f"{path} is not a list of runs: {error!r}.", ExitCode.BAD_INPUT) from error
            if earlier != found.digest:
                message = f"{file} was changed after the first run. Give another --output, or remove {path}."
                raise CliError(message, ExitCode.BAD_INPUT)
        found.write()
        return found

    def write(self) -> None:
        content = {"sha256": self.digest, "jobs": self.jobs, "lost": self.lost}
        self.path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


@dataclass
class _Loss:
    """Terminates the last node of a job in its first attempt, when half of its steps are done."""

    side: _Side
    spec: BenchFile
    journal: _Journal

    def after_line(self, job_id: str, line: LogLine) -> None:
        """Raises CliError if the node is not terminated."""
        if job_id in self.journal.lost or line.attempt > 1:
            return
        steps = steps_of([line])
        if not steps or 2 * steps[0].number < self.spec.warmup_steps + self.spec.steps:
            return
        state = self.side.engine.state(job_id)
        if state is None or state.is_over or len(state.attempts) != 1:
            return
        node = state.attempts[0].instance_ids[-1]
        nodes = AwsNodeTermination(self.side.plan.region, clients=self.side.invocation.clients)
        try:
            at = nodes.terminate(node)
        except RequestRefusedError as error:
            raise CliError(
                f"{job_id} keeps running. Its node {node} is not terminated: {error}", ExitCode.NOT_READY
            ) from error
        self.journal.lost[job_id] = f"{at:%Y-%m-%dT%H:%M:%SZ}"
        self.journal.write()
        echo(f"Terminated {node} of {job_id}.", err=True)


def _measure(side: _Side, spec: BenchFile, seed: int, journal: _Journal, scratch: Path, *, yes: bool) -> None:
    """One run: the job of an earlier call that succeeded, else a new one. Raises CliError if it fails."""
    key = f"{side.side.name} {seed}"
    state = _earlier(side, journal.jobs.get(key))
    if state is None:
        state = _started(side, seed, journal, key, yes=yes)
    lines = _lines(side.engine, state)
    place = scratch / state.job.id
    imported = tuple(_results(side, state, place))
    run = measured_run(state, steps_of(lines), spec, seed, imported)
    side.states.append(state)
    side.runs.append(run)
    if spec.fidelity is not None and spec.fidelity.logits is not None and run.run.excluded is None:
        _compare_logits(side, spec, state, place)


def _earlier(side: _Side, job_id: str | None) -> JobState | None:
    if job_id is None:
        return None
    with asking(side.invocation, side.plan, "Asking AWS for the earlier runs ..."):
        state = side.engine.state(job_id, every_node=True)
    if state is None or len(state.attempts) > 1 or (state.outcome is not None and not state.outcome.is_success):
        return None
    return state if state.is_over else _followed(side, job_id)


def _started(side: _Side, seed: int, journal: _Journal, key: str, *, yes: bool, loss: _Loss | None = None) -> JobState:
    request = job_request(seeded(read_job_file(side.side.job), seed))
    with asking(side.invocation, side.plan, "Packing the source ..."):
        job = side.engine.prepare(request, packed_source(request), datetime.now(UTC))
    submit(side.invocation, side.plan, side.engine, job, yes=yes, show=False)
    journal.jobs[key] = job.job_id
    journal.write()
    echo(f"Started {job.job_id}: {side.side.name}, seed {seed}.", err=True)
    return _followed(side, job.job_id, loss)


def _measure_recovery(side: _Side, spec: BenchFile, journal: _Journal, *, yes: bool) -> None:
    """One more job, of which a node is terminated. Raises CliError if it fails, or loses no node."""
    key = f"{side.side.name} recovery"
    job_id = journal.jobs.get(key)
    state = None
    if job_id is not None:
        with asking(side.invocation, side.plan, "Asking AWS for the job that lost a node ..."):
            state = side.engine.state(job_id, every_node=True)
    if state is None or (state.is_over and not _has_recovered(state, journal)):
        state = _started(side, spec.seeds[-1], journal, key, yes=yes, loss=_Loss(side, spec, journal))
    elif not state.is_over:
        state = _followed(side, state.job.id, _Loss(side, spec, journal))
    if not _has_recovered(state, journal):
        message = f"{state.job.id} did not lose the node that was to be terminated: run the command again to repeat it."
        raise CliError(message, ExitCode.NOT_READY)
    side.recovered.append(RecoveredJob(state=state, gone_at=moment(journal.lost[state.job.id])))


def _has_recovered(state: JobState, journal: _Journal) -> bool:
    return state.job.id in journal.lost and len(state.attempts) > 1 and bool(state.outcome and state.outcome.is_success)


def _followed(side: _Side, job_id: str, loss: _Loss | None = None) -> JobState:
    """Raises CliError for a job that fails, or whose end is unknown."""

    def after_line(line: LogLine) -> None:
        if loss is not None:
            loss.after_line(job_id, line)

    state = follow_job(JobFollower(job_id, side.engine), quiet=True, after_line=after_line)
    if state is None:
        raise CliError(f"The state of {job_id} is unknown. Run the command again to continue.", ExitCode.UNKNOWN)
    state = side.engine.state(job_id, every_node=True) or state
    if state.outcome is None or not state.outcome.is_success:
        show_explanation(side.engine, state)
        reason = state.outcome.reason if state.outcome else ""
        raise CliError(f"{job_id} did not succeed: {reason}. No record was written.", ExitCode.NOT_READY)
    return state


def _lines(engine: JobEngine, state: JobState) -> list[LogLine]:
    log = engine.open_log(state.job.id)
    return [*log.new_lines(state), *log.last_line()]


def _results(side: _Side, state: JobState, place: Path) -> Sequence[Imported]:
    """The results of other tools in the outputs of the job. With several files, metrics are prefixed with the file's
    name.

    Raises CliError for a file that is missing or unknown.
    """
    found: list[Imported] = []
    for name in side.side.results:
        try:
            one = read_results(_fetched(side.engine, state, name, place).read_text(encoding="utf-8"))
            found.append(one if len(side.side.results) == 1 else one.named(Path(name).stem))
        except (ImportFileError, UnicodeDecodeError) as error:
            raise CliError(f"{name} of {state.job.id}: {error}.", ExitCode.NOT_READY) from error
    return found


def _fetched(engine: JobEngine, state: JobState, name: str, place: Path) -> Path:
    target = place / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() and not download(engine, state.job.id, f"outputs/{name}", target):
        raise CliError(f"{state.job.id} has no {name} in its outputs.", ExitCode.NOT_READY)
    return target


def _compare_logits(side: _Side, spec: BenchFile, state: JobState, place: Path) -> None:
    fidelity = spec.fidelity
    assert fidelity is not None
    assert fidelity.logits is not None
    assert fidelity.fp32 is not None
    assert fidelity.bf16 is not None
    logits = _fetched(side.engine, state, fidelity.logits, place)
    try:
        found = logits_fidelity(logits, fidelity.fp32, fidelity.bf16, fidelity.logits_limit)
    except FidelityError as error:
        raise CliError(f"{state.job.id}: {error}.", ExitCode.NOT_READY) from error
    side.fidelity.append(found)


def _compare_losses(sides: Sequence[_Side], spec: BenchFile) -> None:
    if spec.fidelity is None or spec.fidelity.reference is None:
        return
    reference = next(one for one in sides if one.side.name == spec.fidelity.reference)
    for side in sides:
        if side is not reference:
            curves, references = _curves(side), _curves(reference)
            found, warnings = loss_fidelity(curves, references, reference.side.name, spec.fidelity.loss_limit)
            side.fidelity.append(found)
            side.warnings += warnings


def _curves(side: _Side) -> Mapping[int, Sequence[tuple[int, float]]]:
    return {
        one.run.seed or 0: [(int(step), loss) for step, loss in one.run.loss]
        for one in side.runs
        if one.run.excluded is None
    }


def _record(side: _Side, spec: BenchFile) -> Record:
    state, plan, of_side = side.states[-1], side.plan, side.of_side
    made = datetime.now(UTC)
    prices = _prices(side, of_side, made)
    accelerators = 0 if of_side == LAB else plan.type.devices * state.job.nodes
    used = accelerators if state.job.has_ranks else side.side.used
    hardware = Hardware(
        type=f"{LAB_PREFIX}{plan.instance_type}" if of_side == LAB else plan.instance_type,
        nodes=state.job.nodes,
        accelerators=accelerators,
        used=used if side.side.used is None else side.side.used,
        region=plan.region,
        purchase=None if of_side == LAB else plan.capacity,
        usd_hour=prices.paid,
        price_source=prices.source if prices.paid is not None else None,
        price_date=prices.date if prices.paid is not None else None,
    )
    return side_record(
        spec,
        side.side,
        side.runs,
        of_side=of_side,
        hardware=hardware,
        software=_software(state.job.stack, side.side.job.parent),
        prices=prices,
        command=state.job.command,
        made=f"{made:%Y-%m-%dT%H:%M:%SZ}",
        tool=Tool(version=version("trainium-cdk")),
        recovered=side.recovered,
        fidelity=tuple(side.fidelity),
        warnings=tuple(side.warnings),
    )


def _prices(side: _Side, of_side: str, now: datetime) -> SidePrices:
    """What an hour of all nodes costs: as paid, and by the on-demand list price of the instances alone."""
    if of_side == LAB:
        return SidePrices(paid=None, list=None, source="", date="", why_unknown=_NO_PRICE_OF_LAB)
    plan, state = side.plan, side.states[-1]
    paid = side.engine.hourly(state)
    item = PricedItem(product=ON_DEMAND, region=plan.region, instance_type=plan.instance_type)
    aws = AwsPrices(plan.region, clients=side.invocation.clients)
    listed = quotes([item], own=plan.prices, aws=aws, snapshot=snapshot_prices()).prices.get(item)
    return SidePrices(
        paid=None if paid.unknown else float(paid.usd),
        list=None if listed is None or listed.usd is None else float(listed.usd) * state.job.nodes,
        source="trn estimate: the job's machines with all that is billed by the hour; list: the instances alone",
        date=f"{now:%Y-%m-%d}",
        why_unknown="trn estimate has no price for it",
    )


def _software(stack: str | None, folder: Path) -> Software:
    """The software of the plan. Outside of git, the commit and whether files differ from it are None."""
    try:
        commit = _git_output(folder, "rev-parse", "HEAD")
        is_dirty = bool(_git_output(folder, "status", "--porcelain", "--", "."))
    except (OSError, subprocess.SubprocessError):
        return Software(stack=stack)
    return Software(stack=stack, git_commit=commit, git_dirty=is_dirty)


def _git_output(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()


def _exit_code(records: Sequence[Record]) -> ExitCode:
    states = {one.state for record in records[:1] for one in (*record.gates, *record.fidelity)}
    if NOT_MET in states:
        return ExitCode.NOT_READY
    return ExitCode.UNKNOWN if NOT_MEASURED in states else ExitCode.OK
