"""Jobs that do not count: those of `trn bench`, in NAME.runs beside the records, and those of `trn pilot`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from trainium_wire.job import SUCCEEDED

FAILED, RECOVERY = "failed", "recovery"
RUNS = ".runs"
"""The end of the name of the journal of `trn bench`."""
JOB = ".job.json"
"""The end of the name of the file with the job of a side, which `trn pilot` writes: the output of `trn jobs --json`."""


@dataclass(frozen=True, kw_only=True)
class FailedJob:
    """A job that does not count.

    Attributes:
        side: The name of its side.
        run: Its seed, or RECOVERY; empty for the only job of a side.
        reason: Why it does not count.
    """

    job: str
    side: str
    run: str
    reason: str

    @property
    def text(self) -> str:
        """For people, without a period."""
        return f"{self.job} ({', '.join(filter(None, (self.side, self.run)))}): {self.reason}"


def read_failed_jobs(content: Mapping[str, Any]) -> Sequence[FailedJob]:
    """The jobs in the content of the file.

    Raises:
        KeyError, TypeError, AttributeError: The content is not that of such a file.
    """
    names = [field.name for field in fields(FailedJob)]
    return [FailedJob(**{name: str(job[name]) for name in names}) for job in content[FAILED]]


def read_pilot_job(content: Mapping[str, Any], side: str) -> Sequence[FailedJob]:
    """The job in the output of `trn jobs --json`; empty if it succeeded.

    Raises:
        KeyError, TypeError, AttributeError: The content is not that of such a file.
    """
    status, outcome = str(content["status"]), content["outcome"]
    if status == SUCCEEDED:
        return ()
    if outcome is None:
        reason = f"it had not ended: its state was {status}"
    else:
        code = "" if outcome["exit_code"] is None else f", exit code {outcome['exit_code']}"
        reason = f"{status}{code}: {outcome['reason']}".removesuffix(": ")
    return [FailedJob(job=str(content["job"]["id"]), side=side, run="", reason=reason)]
