"""The jobs of `trn bench` that do not count, which it stores in NAME.runs beside the records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

FAILED, RECOVERY = "failed", "recovery"
RUNS = ".runs"
"""The end of the file's name."""


@dataclass(frozen=True, kw_only=True)
class FailedJob:
    """A job that does not count.

    Attributes:
        side: The name of its side.
        run: Its seed, or RECOVERY.
        reason: Why it does not count.
    """

    job: str
    side: str
    run: str
    reason: str

    @property
    def text(self) -> str:
        """For people, without a period."""
        return f"{self.job} ({self.side}, {self.run}): {self.reason}"


def read_failed_jobs(content: Mapping[str, Any]) -> Sequence[FailedJob]:
    """The jobs in the content of the file.

    Raises:
        KeyError, TypeError, AttributeError: The content is not that of such a file.
    """
    names = [field.name for field in fields(FailedJob)]
    return [FailedJob(**{name: str(job[name]) for name in names}) for job in content[FAILED]]
