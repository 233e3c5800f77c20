"""Selects the engine of a job command, and finds its jobs."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import click

from trainium_cli.cluster_choice import engine_stack_name, others_sentence, read_cluster_plan
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Command, Invocation, stack_option
from trainium_cli.waiting import waiting
from trainium_core.engines.registry import ENGINES, chosen_engine, job_engine_keys
from trainium_core.jobs.engine import JobEngine, NoStackError
from trainium_core.jobs.progress import JobState
from trainium_core.naming import SLURM
from trainium_core.plan import Plan
from trainium_core.problems import nearest


def engine_options(command: Command) -> Command:
    """--on, --stack, and the options that select a cluster, for a command that finds jobs."""
    return _engine_options(command, default="all engines of the plan are searched")


def new_job_options(command: Command) -> Command:
    """--on, --stack, and the options that select a cluster, for a command that starts a job."""
    return _engine_options(
        command, default="`on` of the job file, else the cluster, or the first of trn:stacks without one"
    )


def _engine_options(command: Command, *, default: str) -> Command:
    on = click.option(
        "--on",
        type=click.Choice((*ENGINES, SLURM)),
        help=f"Engine of the job; slurm is another name for pcs. Default: {default}.",
    )
    return on(stack_option(command))


@dataclass(frozen=True, kw_only=True)
class JobEngines:
    """The engines of a plan that run jobs, or the one of --on or --stack."""

    invocation: Invocation
    plan: Plan
    engines: Sequence[JobEngine]

    def of(self, job_id: str) -> Sequence[JobEngine]:
        """The engines whose job IDs have the form of this one, else only the first engine."""
        return [engine for engine in self.engines if engine.claims(job_id)] or self.engines[:1]

    def known(self, job_id: str | None, *, every_node: bool = False) -> tuple[JobEngine, JobState]:
        """The engine and the state of a job.

        Args:
            job_id: ID of the job; None for the last job.
            every_node: Read the reports of all nodes.

        Raises:
            CliError: The job does not exist, no job has been started, or no engine is deployed.
            UnavailableError: AWS could not be read.
        """
        if job_id is None:
            return self._last(every_node=every_node)
        with asking(self.invocation, self.plan, "Asking AWS for jobs ..."):
            deployed: list[JobEngine] = []
            missing: list[NoStackError] = []
            for engine in self.of(job_id):
                try:
                    state = engine.state(job_id, every_node=every_node)
                except NoStackError as error:
                    missing.append(error)
                    continue
                deployed.append(engine)
                if state is not None:
                    return engine, state
            if not deployed:
                raise missing[0]
            ids = [known for engine in deployed for known in engine.store.job_ids()]
            close = nearest(job_id, ids)
            shown = f"; nearest: {close}" if close else ""
            raise CliError(f"Job {job_id} does not exist{shown}. `trn jobs` lists them.", ExitCode.NOT_READY)

    def newest(self, most: int, *, brief: bool) -> list[tuple[JobEngine, JobState]]:
        """The most recent jobs of all engines, newest first, as JobEngine. Raises CliError if no engine is deployed."""
        return self._from_all(lambda engine: engine.newest(most, brief=brief))[:most]

    def _last(self, *, every_node: bool) -> tuple[JobEngine, JobState]:
        newest = self._from_all(lambda engine: [state for state in [engine.last()] if state is not None])
        if not newest:
            raise CliError("No job has been started: `trn run` starts one.", ExitCode.NOT_READY)
        engine, state = newest[0]
        return engine, (engine.state(state.job.id, every_node=True) or state) if every_node else state

    def _from_all(self, read: Callable[[JobEngine], Sequence[JobState]]) -> list[tuple[JobEngine, JobState]]:
        """Newest first. Engines without a deployed stack are skipped. Raises CliError if no engine is deployed."""
        found: list[tuple[JobEngine, JobState]] = []
        missing: list[NoStackError] = []
        with asking(self.invocation, self.plan, "Asking AWS for jobs ..."):
            for engine in self.engines:
                try:
                    found += [(engine, state) for state in read(engine)]
                except NoStackError as error:
                    missing.append(error)
            if len(missing) == len(self.engines):
                raise missing[0]
        return sorted(found, key=lambda each: each[1].job.submitted_at, reverse=True)


def read_engines(invocation: Invocation, on: str | None, stack: str | None) -> JobEngines:
    """The engine of --on or --stack, else all engines of the plan. Raises PlanError, UnavailableError and CliError."""
    plan = read_cluster_plan(invocation)
    first = chosen_engine(plan, on)
    keys = [first] if on is not None or stack is not None else job_engine_keys(plan)
    return JobEngines(invocation=invocation, plan=plan, engines=[_engine(invocation, plan, key, stack) for key in keys])


def read_engine(invocation: Invocation, on: str | None, stack: str | None) -> tuple[Plan, JobEngine]:
    """The plan, and the engine of --on, else the one that `chosen_engine` selects. Raises as `read_engines`."""
    plan = read_cluster_plan(invocation)
    return plan, _engine(invocation, plan, chosen_engine(plan, on), stack)


def _engine(invocation: Invocation, plan: Plan, key: str, stack: str | None) -> JobEngine:
    return ENGINES[key].jobs(plan, engine_stack_name(invocation, plan, key, stack), invocation.clients)


@contextmanager
def asking(invocation: Invocation, plan: Plan, message: str) -> Generator[None]:
    """Shows the message during requests. Raises CliError for a stack that is not deployed."""
    try:
        with waiting(message):
            yield
    except NoStackError as error:
        raise CliError(f"{error}{others_sentence(invocation, plan)}", ExitCode.NOT_READY) from error
