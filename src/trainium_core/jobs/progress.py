"""Where a job stands: what its nodes have written, in one state."""

from dataclasses import dataclass

from trainium_wire.job import Job, Outcome
from trainium_wire.job_progress import Attempt

ENDING = "ending"
"""The status of a job whose last attempt is over, and it itself not yet."""


@dataclass(frozen=True, kw_only=True)
class JobState:
    """A job with its attempts. outcome: None until it is over. stopping: `trn stop` has asked for its end."""

    job: Job
    attempts: tuple[Attempt, ...]
    outcome: Outcome | None
    stopping: bool = False

    @property
    def is_over(self) -> bool:
        return self.outcome is not None

    @property
    def status(self) -> str:
        """One word or two: how it ended, else what is waited for."""
        if self.outcome is not None:
            return self.outcome.result
        if self.stopping:
            return "stopping"
        if not self.attempts:
            return "waiting for the nodes"
        last = self.attempts[-1]
        if last.outcome is not None:
            return f"{last.outcome.result}, waiting for the nodes" if self._is_retried else ENDING
        states = {node.state for node in last.nodes}
        if last.reporting < self.job.nodes or states <= {"source", "inputs", "setup", "compile_cache"}:
            return "starting"
        return "running"

    @property
    def _is_retried(self) -> bool:
        """Whether another attempt follows the last one, which has ended."""
        outcome = self.attempts[-1].outcome
        return outcome is not None and not self.stopping and self.job.is_retried(outcome, len(self.attempts))
