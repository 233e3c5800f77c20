"""Stores the results of an attempt in S3."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from trainium_wire.job_keys import output_path
from trn_node.files import KEPT_MARK
from trn_node.s3 import S3Error

from .checkpoints import Checkpoints
from .file_tree import file_tree, listed, printable
from .launch import Launch
from .logs import Log
from .store import Store

FINAL_ATTEMPTS = 3
PAUSE_SECONDS = 1
MAX_FAILED_REQUESTS = 3
"""Limit of failed requests in one upload of outputs, because each takes seconds. The next upload starts with the other
files."""


KEY_TOO_LONG = "KeyTooLongError"
"""S3's error code for keys of more than 1,024 bytes."""


class Results:
    """Checkpoints, outputs and the log of an attempt.

    Attributes:
        checkpoints: The checkpoints of this node.
        checkpoint_seconds: Time of the uploads of checkpoints while the command ran.
        lost: After `store` or `complete_checkpoints`, a clause on the checkpoints or outputs that could not be stored;
            empty if all were.
    """

    def __init__(self, launch: Launch, store: Store, log: Log) -> None:
        self._launch, self._log = launch, log
        self.checkpoints = Checkpoints(launch, store, launch.place / "checkpoints", log.say)
        self._outputs = Outputs(launch, store, launch.place / "outputs", log.say)
        self._began: float | None = None
        self._running_ended: float | None = None
        self.checkpoint_seconds = 0.0
        self.lost = ""

    def upload_while_running(self) -> None:
        """Store checkpoints while the command runs."""
        start = time.monotonic()
        try:
            self.checkpoints.upload()
        finally:
            end = self._running_ended or time.monotonic()
            self.checkpoint_seconds += max(0.0, end - start)

    def end_running(self) -> None:
        """Record that the command has ended."""
        self._running_ended = self._running_ended or time.monotonic()

    def store(self, is_cancelled: Callable[[], bool]) -> None:
        """Store the remaining results. The time limits begin with the first call of this or the next method.

        Args:
            is_cancelled: Whether to stop retrying.
        """
        tasks = {"checkpoints": self.checkpoints.upload, "outputs": self._outputs.upload, "log": self._log.send}
        self._deliver(tasks, is_cancelled)

    def complete_checkpoints(self) -> None:
        """On node 0, write manifests after all nodes have stored their parts. The same time limits apply."""
        self._deliver({"checkpoints": self.checkpoints.complete_all}, lambda: False)

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
        if self._outputs.left_out:
            left_out = (f"{path} ({reason})" for path, reason in self._outputs.left_out.items())
            texts.append(f"outputs: {listed(left_out)}")
        self.lost = f"not in S3, but kept on the node in {place}: {'; '.join(texts)}" if texts else ""
        if texts:
            (place / KEPT_MARK).touch()
        else:
            (place / KEPT_MARK).unlink(missing_ok=True)


class Outputs:
    """Stores the files of the job's output folder, and a list of its symbolic links.

    Attributes:
        left_out: The reasons why paths were not stored at the last upload, which cannot be stored in S3.
    """

    def __init__(self, launch: Launch, store: Store, folder: Path, say: Callable[[str], None]) -> None:
        self._launch, self._store, self._folder, self._say = launch, store, folder, say
        self._stored: dict[str, tuple[int, int]] = {}
        self._links: dict[str, str] = {}
        self._failed: dict[str, OSError] = {}
        self._names_of_other_nodes = {output_path(other, "").rstrip("/") for other in range(1, len(launch.nodes))}
        self.left_out: dict[str, str] = {}

    def upload(self) -> None:
        """Store new and changed files. After MAX_FAILED_REQUESTS, the other files are left to the next call.

        Raises:
            OSError: Not every file is stored.
        """
        rank, keys, tree = self._launch.rank, self._launch.job_keys, file_tree(self._folder)
        if not rank:
            for path in [path for path in tree.files if path.partition("/")[0] in self._names_of_other_nodes]:
                tree.files.pop(path)
                tree.left_out[printable(path)] = "the name is that of another node's outputs"
        for path, reason in tree.left_out.items():
            if self.left_out.get(path) != reason:
                self._say(f"outputs: {path} is not stored: {reason}")
        self.left_out = tree.left_out
        self._failed = {path: error for path, error in self._failed.items() if path in tree.files}
        if tree.links != self._links:
            self._store.write(keys.output_links(rank), {"links": tree.links})
            self._links = tree.links
        failed_requests = 0
        for path, version in sorted(tree.files.items(), key=lambda file: file[0] in self._failed):
            if self._stored.get(path) == version or failed_requests == MAX_FAILED_REQUESTS:
                continue
            self._failed.pop(path, None)
            try:
                self._store.upload(keys.output(rank, path), self._folder / path)
                self._stored[path] = version
            except OSError as error:
                self._failed[path] = error
                failed_requests += not error.errno
        left = [path for path, version in tree.files.items() if self._stored.get(path) != version]
        if left:
            # An error that is not a refusal comes first, because the next call may then succeed.
            example = min(self._failed.values(), key=is_refusal)
            raise example if len(left) == 1 else SomeLeftError(left, example)


class SomeLeftError(OSError):
    """Several files were not stored.

    Attributes:
        example: The reason for one of them.
    """

    def __init__(self, left: Sequence[str], example: OSError) -> None:
        super().__init__(f"{len(left)} files were not stored: {listed(map(printable, left))}, for example: {example}")
        self.example = example


def is_refusal(error: Exception) -> bool:
    """Whether retries are unlikely to help: S3 has refused a request, or a file cannot be read."""
    if isinstance(error, SomeLeftError):
        return is_refusal(error.example)
    return (
        error.status in (403, 404) or error.code == KEY_TOO_LONG
        if isinstance(error, S3Error)
        else isinstance(error, OSError) and bool(error.errno)
    )


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
