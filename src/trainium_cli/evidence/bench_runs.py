"""The runs of `trn bench`: starts and follows their jobs, and collects the measurements."""

import json
from collections.abc import Sequence, Set
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation
from trainium_cli.jobs.job_engines import asking
from trainium_cli.jobs.job_files import download
from trainium_cli.jobs.job_following import follow_job, show_reason
from trainium_cli.jobs.job_options import packed_source
from trainium_cli.jobs.job_report import report_source
from trainium_cli.jobs.job_submission import submit
from trainium_cli.terminal import echo
from trainium_core.evidence.bench import MeasuredRun, measured_run, not_counted
from trainium_core.evidence.bench_file import BenchFile, BenchSide, seeded
from trainium_core.evidence.failed_jobs import FAILED, RECOVERY, FailedJob, read_failed_jobs
from trainium_core.evidence.imports import Imported, ImportFileError, read_results
from trainium_core.evidence.loss_curves import loss_problems, losses_by_step
from trainium_core.evidence.record import CPU, GPU, LAB, TRAINIUM
from trainium_core.evidence.recovery import RecoveredJob
from trainium_core.evidence.steps import repeated_seconds, training_steps
from trainium_core.jobs.engine import JobEngine
from trainium_core.jobs.follow import JobFollower, LogLine
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import job_request, read_job_file
from trainium_core.nodes.aws_control import AwsNodeControl
from trainium_core.plan import Plan
from trainium_runtime.errors import RequestRefusedError
from trainium_wire.formats import moment


@dataclass
class Side:
    """A side with the engine that runs its jobs, and its runs so far.

    Attributes:
        states: Final states of the jobs of `runs`, in the same order.
        recovered: The job that lost a node; None before this job has ended, and without `recovery`.
        recorded: The jobs in the present results file of the side.
    """

    config: BenchSide
    plan: Plan
    engine: JobEngine
    invocation: Invocation
    states: list[JobState] = field(default_factory=list[JobState])
    runs: list[MeasuredRun] = field(default_factory=list[MeasuredRun])
    recovered: RecoveredJob | None = None
    warnings: list[str] = field(default_factory=list[str])
    recorded: Set[str] = frozenset()

    @property
    def hardware_kind(self) -> str:
        """The kind of hardware in the record: TRAINIUM, GPU, CPU or LAB."""
        if not self.invocation.reaches_aws(self.plan.region):
            return LAB
        return GPU if self.plan.type.is_gpu else TRAINIUM if self.plan.type.neuron_devices else CPU


@dataclass
class Journal:
    """Stores the job of each run, so that an interrupted command can continue.

    It also stores the digest of the file with the gates and its reference, which must not change after the first run.

    Attributes:
        path: The journal, NAME.runs in the output folder.
        digest: The digest of the file.
        jobs: Job IDs, by side and seed, or side and "recovery".
        lost: The time when a node of a job was terminated, by the job's ID.
        failed: The jobs that do not count, and that other jobs repeat.
    """

    path: Path
    digest: str
    jobs: dict[str, str]
    lost: dict[str, str]
    failed: dict[str, FailedJob] = field(default_factory=dict[str, FailedJob])

    @classmethod
    def open(cls, output: Path, spec: BenchFile, file: Path) -> "Journal":
        """Read the journal in the output folder, or create it.

        Raises:
            CliError: The journal is not valid, or the file was changed after the first run.
        """
        output.mkdir(parents=True, exist_ok=True)
        path = output / f"{spec.name}.runs"
        journal = cls(path, spec.digest, {}, {})
        if path.exists():
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                journal.jobs = {str(name): str(job) for name, job in content["jobs"].items()}
                journal.lost = {str(job): str(at) for job, at in content["lost"].items()}
                journal.failed = {job.job: job for job in read_failed_jobs(content)}
                earlier = content["sha256"]
                if None in map(moment, journal.lost.values()):
                    raise ValueError("a time in lost is not valid")
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                message = f"{path} is not valid: {error!r}. Choose another --output."
                raise CliError(message, ExitCode.BAD_INPUT) from error
            if earlier != journal.digest:
                imported = spec.fidelity.imported if spec.fidelity else None
                changed = f"{file} or the reference {imported.id}" if imported else f"{file}"
                message = f"{changed} was changed after the first run. Choose another --output."
                raise CliError(message, ExitCode.BAD_INPUT)
        journal.write()
        return journal

    def write(self) -> None:
        """Store the journal."""
        failed = [asdict(job) for job in self.failed.values()]
        content = {"sha256": self.digest, "jobs": self.jobs, "lost": self.lost, FAILED: failed}
        self.path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    def note_failure(self, key: str, state: JobState) -> None:
        """Store why a job does not count."""
        side, _, run = key.partition(" ")
        run = run if run == RECOVERY else f"seed {run}"
        self.failed[state.job.id] = FailedJob(job=state.job.id, side=side, run=run, reason=not_counted(state))
        self.write()


@dataclass
class _NodeLoss:
    """Terminates the last node of a job in its first attempt, when half of the warm-up and counted steps are done."""

    side: Side
    spec: BenchFile
    journal: Journal

    def after_line(self, job_id: str, line: LogLine) -> None:
        """Terminate the node if it is time. Raises CliError if EC2 refuses."""
        if job_id in self.journal.lost or line.attempt > 1:
            return
        steps = training_steps([line])
        if not steps or 2 * steps[0].number < self.spec.warmup_steps + self.spec.steps:
            return
        state = self.side.engine.state(job_id)
        if state is None or state.is_over or len(state.attempts) != 1:
            return
        node = state.attempts[0].instance_ids[-1]
        nodes = AwsNodeControl(self.side.plan.region, clients=self.side.invocation.clients)
        try:
            at = nodes.terminate(node)
        except RequestRefusedError as error:
            raise CliError(
                f"{job_id} keeps running. Its node {node} is not terminated: {error}", ExitCode.NOT_READY
            ) from error
        self.journal.lost[job_id] = f"{at:%Y-%m-%dT%H:%M:%SZ}"
        self.journal.write()
        echo(f"Terminated {node} of {job_id}.", err=True)


def measure(sides: Sequence[Side], spec: BenchFile, journal: Journal, *, yes: bool) -> None:
    """Measure the runs of each side: first those of the reference, so that the others are compared with it from the
    first run on.

    A run is the job of an earlier call, unless that failed or was restarted; else a new job.

    Raises:
        CliError: A job fails, its state is unknown, a result is missing or invalid, or the losses of the runs so far
            cannot be compared, so that no new job is started.
    """
    reference = spec.fidelity.reference if spec.fidelity else None
    with TemporaryDirectory() as scratch:
        for side in sorted(sides, key=lambda side: side.config.name != reference):
            for seed in spec.seeds:
                key = f"{side.config.name} {seed}"
                state = _earlier(side, journal, key)
                if state is None:
                    _check_losses(sides, spec)
                    state = _started(side, seed, journal, key, yes=yes)
                lines = _lines(side.engine, state)
                imported = tuple(_results(side, state, Path(scratch) / state.job.id))
                side.states.append(state)
                side.runs.append(measured_run(state, training_steps(lines), spec, seed, imported))


def _check_losses(sides: Sequence[Side], spec: BenchFile) -> None:
    """Check that the losses of each side can be compared with those of the reference, for the seeds that both have.

    Losses that are not finite can be: they are a result.

    Raises:
        CliError: They cannot.
    """
    if spec.fidelity is None or spec.fidelity.loss_limit is None:
        return
    counted = {
        side.config.name: [measured.run for measured in side.runs if measured.run.excluded is None] for side in sides
    }
    reference = spec.fidelity.reference
    of_reference = spec.fidelity.imported.runs if spec.fidelity.imported else counted.pop(reference)
    with_reference = {run.seed for run in of_reference}
    for name, runs in counted.items():
        seeds = [run.seed for run in runs if run.seed is not None and run.seed in with_reference]
        losses = chain(*(losses_by_step(each, seeds).values() for each in (runs, of_reference)))
        if not seeds or any(loss is None for loss in losses):
            continue
        if problem := next(loss_problems(runs, of_reference, spec.measured_workload, seeds), None):
            message = f"The losses of {name} cannot be compared with those of {reference}: {problem}."
            fix = "No further job was started. Correct what the scripts print, and choose another --output."
            raise CliError(f"{message} {fix}", ExitCode.NOT_READY)


def _earlier(side: Side, journal: Journal, key: str) -> JobState | None:
    job_id = journal.jobs.get(key)
    if job_id is None:
        return None
    with asking(side.invocation, side.plan, "Asking AWS for the earlier runs ..."):
        state = side.engine.state(job_id, every_node=True)
    if state is None and job_id in side.recorded:
        message = f"{job_id} no longer exists, and a new job would replace its run in the results file."
        raise CliError(f"{message} Choose another --output.", ExitCode.BAD_INPUT)
    if state is not None and not_counted(state, while_running=True):
        journal.note_failure(key, state)
        return None
    return state if state is None or state.is_over else _followed(side, journal, key)


def _started(
    side: Side, seed: int, journal: Journal, key: str, *, yes: bool, loss: _NodeLoss | None = None
) -> JobState:
    request = job_request(seeded(read_job_file(side.config.job), seed))
    with asking(side.invocation, side.plan, "Packing the source ..."):
        job = side.engine.prepare(request, packed_source(request), datetime.now(UTC))
    report_source(side.invocation, side.plan, side.engine, request.setup, job)
    submit(side.invocation, side.plan, side.engine, job, yes=yes, show=False)
    journal.jobs[key] = job.job_id
    journal.write()
    echo(f"Submitted {job.job_id}: {side.config.name}, seed {seed}.", err=True)
    return _followed(side, journal, key, loss)


def measure_recovery(side: Side, sides: Sequence[Side], spec: BenchFile, journal: Journal, *, yes: bool) -> None:
    """Measure one more job, and terminate one of its nodes.

    Raises:
        CliError: The job fails, its state is unknown, the node is not terminated, or the losses of the runs cannot be
            compared, so that no new job is started.
    """
    key = f"{side.config.name} {RECOVERY}"
    job_id = journal.jobs.get(key)
    state = None
    if job_id is not None:
        with asking(side.invocation, side.plan, "Asking AWS for the job that lost a node ..."):
            state = side.engine.state(job_id, every_node=True)
    if state is None or (state.is_over and not _has_recovered(state, journal)):
        _check_losses(sides, spec)
        state = _started(side, spec.seeds[-1], journal, key, yes=yes, loss=_NodeLoss(side, spec, journal))
    elif not state.is_over:
        state = _followed(side, journal, key, _NodeLoss(side, spec, journal))
    if not _has_recovered(state, journal):
        message = f"{state.job.id} was not restarted after losing a node: run the command again to repeat the job."
        raise CliError(message, ExitCode.NOT_READY)
    gone_at = moment(journal.lost[state.job.id])
    assert gone_at is not None, "the journal was validated"
    repeated = repeated_seconds(_lines(side.engine, state))
    side.recovered = RecoveredJob(state=state, gone_at=gone_at, repeated=repeated)


def _has_recovered(state: JobState, journal: Journal) -> bool:
    return state.job.id in journal.lost and len(state.attempts) > 1 and bool(state.outcome and state.outcome.is_success)


def _followed(side: Side, journal: Journal, key: str, loss: _NodeLoss | None = None) -> JobState:
    """The state of a job after its end. Raises CliError if the job fails, or its state is unknown."""
    job_id = journal.jobs[key]

    def after_line(line: LogLine) -> None:
        if loss is not None:
            loss.after_line(job_id, line)

    state = follow_job(JobFollower(job_id, side.engine), quiet=True, after_line=after_line)
    if state is None:
        raise CliError(f"The state of {job_id} is unknown. Run the command again to continue.", ExitCode.UNKNOWN)
    state = side.engine.state(job_id, every_node=True) or state
    if state.outcome is None or not state.outcome.is_success:
        show_reason(side.engine, state)
        journal.note_failure(key, state)
        without = "" if loss else " No results were written."
        raise CliError(f"{job_id} did not succeed.{without}", ExitCode.NOT_READY)
    return state


def _lines(engine: JobEngine, state: JobState) -> list[LogLine]:
    log = engine.open_log(state.job.id)
    return [*log.new_lines(state), *log.last_line()]


def _results(side: Side, state: JobState, place: Path) -> Sequence[Imported]:
    """The results of other tools in the outputs of the job.

    With several files, the name of a metric begins with the name of its file.

    Raises:
        CliError: A file is missing, or is not a result of a known tool.
    """
    results: list[Imported] = []
    for name in side.config.results:
        try:
            result = read_results(_fetched(side.engine, state, name, place).read_text(encoding="utf-8"))
            results.append(result if len(side.config.results) == 1 else result.with_prefix(Path(name).stem))
        except (ImportFileError, UnicodeDecodeError) as error:
            raise CliError(f"{name} of {state.job.id}: {error}.", ExitCode.NOT_READY) from error
    return results


def _fetched(engine: JobEngine, state: JobState, name: str, place: Path) -> Path:
    target = place / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() and not download(engine.store, state.job.id, f"outputs/{name}", target):
        raise CliError(f"{state.job.id} has no {name} in its outputs.", ExitCode.NOT_READY)
    return target
