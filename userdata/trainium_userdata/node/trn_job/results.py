"""Stores the results of an attempt in S3."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainium_wire.job_keys import INCOMPLETE_CHECKPOINTS

from .checkpoint_download import download
from .checkpoints import Checkpoints
from .file_tree import listed, printable
from .launch import Launch
from .logs import Log
from .outputs import Outputs, is_refusal
from .periodic_thread import PeriodicThread
from .store import Store

FINAL_ATTEMPTS = 3
PAUSE_SECONDS = 1


class Results:
    """Checkpoints, outputs and the log of an attempt.

    Attributes:
        checkpoints, outputs: The checkpoints and outputs of this node.
        checkpoint_seconds: Time of the uploads of checkpoints while the command ran.
        lost: After `store` or `complete_checkpoints`, a clause on the checkpoints or outputs that could not be stored;
            empty if all were.
    """

    def __init__(self, launch: Launch, store: Store, log: Log) -> None:
        self._launch, self._log = launch, log
        self.checkpoints = Checkpoints(launch, store, launch.place / "checkpoints", log.say)
        self.outputs = Outputs(launch, store, log.say)
        self._began: float | None = None
        self._running_ended: float | None = None
        self.checkpoint_seconds = 0.0
        self.lost = ""

    def restore(self, store: Store) -> Path | None:
        """Make the folders, and download from `store` what they contain at the start.

        Returns:
            The path of the checkpoint that the job resumes from, if any.

        Raises:
            CheckpointError: The job cannot continue from the checkpoint.
            LinkError: A link would lead outside of its folder.
            OSError: S3 does not answer or refuses, or the disk fails.
        """
        launch = self._launch
        for name in ("checkpoints", "outputs"):
            (launch.place / name).mkdir()
        if launch.attempt > 1:
            self.outputs.restore(store)
        if not launch.resume_from:
            return None
        resumed, others = download(launch, store, launch.place / "checkpoints")
        self.checkpoints.add_resumed(resumed, others)
        return resumed

    def as_record(self) -> dict[str, Any]:
        """What was and what was not stored, for the report of the node."""
        checkpoints = self.checkpoints.as_record()
        return {"lost": self.lost, "unstored": self.outputs.unstored, "checkpoints": checkpoints}

    def periodic_threads(self) -> list[PeriodicThread]:
        """The threads that store results while the command runs, not started yet."""
        every = self._launch.spec.checkpoint_seconds
        return [
            PeriodicThread("checkpoints", self._upload_checkpoints, lambda: self.checkpoints.seconds),
            PeriodicThread("outputs", lambda: self.outputs.upload(is_running=True), lambda: every),
        ]

    def _upload_checkpoints(self) -> None:
        start = time.monotonic()
        try:
            self.checkpoints.upload()
        finally:
            end = self._running_ended or time.monotonic()
            self.checkpoint_seconds += max(0.0, end - start)

    def end_running(self, exit_code: int | None) -> None:
        """Record that the command has ended, and its exit code."""
        self._running_ended = self._running_ended or time.monotonic()
        self.checkpoints.end_running(exit_code)
        self.outputs.end_running(exit_code)

    def store(self, is_cancelled: Callable[[], bool]) -> None:
        """Store the remaining results. The time limits begin with the first call of this or the next method.

        Args:
            is_cancelled: Whether to stop retrying.
        """
        tasks = {"checkpoints": self.checkpoints.upload, "outputs": self.outputs.upload, "log": self._log.send}
        self._deliver(tasks, is_cancelled)

    def complete_checkpoints(self) -> None:
        """On node 0, write manifests after all nodes have stored their parts. The same time limits apply."""
        self._deliver({"checkpoints": self.checkpoints.complete_all}, lambda: False)

    @property
    def incomplete(self) -> str:
        """A clause on the checkpoints that are stored, but not complete; empty if all are complete."""
        names, job = self.checkpoints.incomplete, self._launch.job
        fetch = f"to copy what is stored of them: `trn cp {job}:{INCOMPLETE_CHECKPOINTS} DIR`"
        return f"checkpoints that are not complete: {listed(map(printable, names))}; {fetch}" if names else ""

    def _deliver(self, tasks: Mapping[str, Callable[[], object]], is_cancelled: Callable[[], bool]) -> None:
        timing, place = self._launch.timing, self._launch.place
        self._began = self._began or time.monotonic()
        left = deliver(
            tasks,
            self._log.say,
            is_cancelled,
            began=self._began,
            patience=timing.results,
            refused_patience=timing.refused,
        )
        texts = [f"{name}: {error}" for name, error in left.items() if name != "log"]
        for name, left_out in (("checkpoints", self.checkpoints.left_out), ("outputs", self.outputs.left_out)):
            if left_out:
                texts.append(f"{name}: {listed(f'{path} ({reason})' for path, reason in left_out.items())}")
        self.lost = f"not in S3, but kept on the node in {place}: {'; '.join(texts)}" if texts else ""


def deliver(
    tasks: Mapping[str, Callable[[], object]],
    say: Callable[[str], None],
    is_cancelled: Callable[[], bool],
    *,
    began: float,
    patience: float,
    refused_patience: float,
) -> dict[str, Exception]:
    """Run all tasks, and retry failed ones until all succeed, the time limit is reached, or the job is cancelled.

    Args:
        tasks: The tasks by name.
        say: Called with each new error.
        is_cancelled: Whether to stop retrying.
        began: When the time limit began, by time.monotonic().
        patience: The time limit in seconds.
        refused_patience: The time limit in seconds if retries are unlikely to help any remaining task (`is_refusal`).

    Returns:
        The remaining tasks with their last errors.
    """
    left, errors = dict(tasks), dict[str, Exception]()
    while True:
        for name in list(left):
            try:
                left.pop(name)()
                errors.pop(name, None)
            except Exception as error:
                left[name] = tasks[name]
                if str(error) != str(errors.get(name, "")):
                    say(f"{name}: {error}")
                errors[name] = error
        limit = refused_patience if all(map(is_refusal, errors.values())) else patience
        if not errors or is_cancelled() or time.monotonic() - began > limit:
            return errors
        time.sleep(PAUSE_SECONDS)


def retry(what: str, task: Callable[[], object], say: Callable[[str], None]) -> None:
    """Try a task up to FINAL_ATTEMPTS times. Errors are passed to `say`, not raised."""
    for _ in range(FINAL_ATTEMPTS):
        try:
            task()
            return
        except Exception as error:
            say(f"{what}: {error}")
