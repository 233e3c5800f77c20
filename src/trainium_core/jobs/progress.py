"""The state of a job, from the records of its nodes or from the service that runs it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainium_wire.job import FAILED, RESULTS_LOST, SUCCEEDED, Job, Outcome
from trainium_wire.job_progress import Attempt

_AFTER_COMMAND = {"results", "ending", "ended", FAILED, RESULTS_LOST, SUCCEEDED}
"""The states of a node whose command has ended."""


@dataclass(frozen=True, kw_only=True)
class JobState:
    """A job with its attempts.

    Attributes:
        job: The job.
        attempts: Its attempts so far.
        outcome: None until the job has ended.
        stopping: Whether its end was requested.
        stage: What the job does or waits for, according to its service; empty if the nodes report it.
        detail: The service's message about that stage, or why the stage could not be read.
        is_billed: Whether the job is billed, not its machines.
        billed_seconds: Billed time; None until it is known.
        has_own_nodes: Whether nodes run for this job alone, so that only its attempts cost something.
        places: S3 URLs of its results, by name, and the state of its warm pool.
    """

    job: Job
    attempts: tuple[Attempt, ...]
    outcome: Outcome | None
    stopping: bool = False
    stage: str = ""
    detail: str = ""
    is_billed: bool = False
    billed_seconds: int | None = None
    has_own_nodes: bool = False
    places: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def is_over(self) -> bool:
        return self.outcome is not None

    @property
    def freed_at(self) -> datetime | None:
        """When the nodes that were read had stored their results, after the end of the job; None before the end."""
        if self.outcome is None:
            return None
        nodes = self.attempts[-1].nodes if self.attempts else ()
        times = [self.outcome.at, *(node.at for node in nodes if node.has_ended)]
        return max((time for time in times if time), default=None)

    @property
    def attempt_count(self) -> int:
        return self.attempts[-1].number if self.attempts else 0

    @property
    def status(self) -> str:
        """The outcome; before the end, a few words on what the job does or waits for."""
        if self.outcome is not None:
            return self.outcome.result
        if self.stopping:
            return "stopping"
        if self.stage:
            return self.stage
        if not self.attempts:
            return "waiting for the nodes"
        last = self.attempts[-1]
        if last.outcome is not None:
            return f"{last.outcome.result}, waiting for the nodes" if self.is_retried else "ending"
        states = {node.state for node in last.nodes}
        if states and states <= _AFTER_COMMAND:
            return "storing results"
        if last.reporting < self.job.nodes or states <= {"source", "inputs", "setup", "compile_cache"}:
            return "starting"
        return "running"

    @property
    def is_retried(self) -> bool:
        """Whether another attempt may follow the last one, which has ended. Its nodes decide within seconds."""
        outcome = self.attempts[-1].outcome if self.attempts else None
        return outcome is not None and not self.stopping and self.job.may_restart(outcome)
