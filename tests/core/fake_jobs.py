"""Training jobs in memory: each look at a job finds the next of the states that a test gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trainium_core.engines.sagemaker.jobs.training_jobs import JobState, JobSummary, LogLine, LogPage
from trainium_runtime.errors import RequestRefusedError, UnavailableError

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAME = "trn-pilot--train"


def state(status: str = "InProgress", stage: str = "Training", *, name: str = NAME, **more: Any) -> JobState:
    of_two: dict[str, Any] = {"instances": 2, "instance_type": "ml.trn1.32xlarge", "created": NOON}
    return JobState(name=name, status=status, stage=stage, **(of_two | more))


def line(text: str, node: str = "algo-1") -> LogLine:
    return LogLine(node=node, time=NOON, text=text)


STARTING, TRAINING, COMPLETED = state(stage="Starting"), state(), state("Completed", "Completed")
FAILED = state("Failed", "Failed", reason="RuntimeError: no data (exit code 1)")
STOPPED = state("Stopped", "Stopped")


@dataclass(kw_only=True)
class FakeJobs:
    """`states`: what each look finds, the last one for ever; an exception is raised, None is no such job.

    written: the lines that each look at the log finds besides those before. pages: so many of these are there already.
    refuses: why AWS accepts no change.
    """

    states: Sequence[JobState | BaseException | None] = (STARTING, TRAINING, COMPLETED)
    written: Sequence[Sequence[LogLine] | Exception] = ()
    pages: int = 1
    summaries: Sequence[JobSummary] = ()
    refuses: str | None = None
    fails_with: BaseException | None = None
    polls: int = 0
    log_reads: int = 0
    uploaded: dict[str, Mapping[str, bytes]] = field(default_factory=dict[str, Mapping[str, bytes]])
    started: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    stopped: list[str] = field(default_factory=list[str])
    listed: list[tuple[str, str, int]] = field(default_factory=list[tuple[str, str, int]])

    def training_job(self, name: str) -> JobState | None:
        assert name.startswith("trn-pilot--")
        found = self.states[min(self.polls, len(self.states) - 1)]
        self.polls += 1
        if isinstance(found, BaseException):
            raise found
        return found

    def training_jobs(self, *, prefix: str = "", status: str = "", most: int) -> Sequence[JobSummary]:
        self.listed.append((prefix, status, most))
        if not self.summaries:
            return ()
        return self.summaries[:most]

    def job_log(self, name: str, position: Mapping[str, str]) -> LogPage:
        assert name.startswith("trn-pilot--")
        page = self.written[self.log_reads] if self.log_reads < len(self.written) else ()
        self.log_reads += 1
        if isinstance(page, Exception):
            raise page
        is_last = self.log_reads >= self.pages
        return LogPage(lines=page, position={**position, "seen": str(self.log_reads)}, is_last=is_last)

    def upload(self, folder_url: str, files: Mapping[str, bytes]) -> int:
        self._take_order()
        self.uploaded[folder_url] = files
        return len(files)

    def start(self, request: Mapping[str, object]) -> None:
        self._take_order()
        if self.fails_with:
            raise self.fails_with
        self.started.append(request)

    def stop(self, name: str) -> None:
        self._take_order()
        self.stopped.append(name)
        self.states = (STOPPED,)

    def _take_order(self) -> None:
        if self.refuses:
            raise RequestRefusedError(self.refuses)


NO_ANSWER = UnavailableError("no answer about the job")
