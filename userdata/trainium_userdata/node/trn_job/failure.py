"""Why a command failed, from its output: the failure of the first rank, not those that it caused on others."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path
from typing import NamedTuple

RANK = re.compile(r"^\[rank (\d+)\] ?(.*?)(?:\[rank \1\] )?$")
TORCH_RANK = re.compile(r"^\[rank(\d+)\]: ?")
"""The prefix of torch.distributed for each line of an uncaught exception."""
BEGIN = "Traceback (most recent call last):"
CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
ROOT_CAUSE = "Root Cause (first observed failure):"
OF_TORCHRUN = (
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError",
    "torch.distributed.elastic.multiprocessing.api.SignalException",
)
OF_CHILD = "subprocess.CalledProcessError"
"""The exception of a launcher whose script has failed, such as `accelerate launch`."""
MAX_LINES = 200
LONGEST_LINE = 500
LEAST_FREE_BYTES = 1024 * 1024

CONSEQUENCE = re.compile(
    r"connection (was )?(reset|closed|refused|aborted)|broken pipe|closed by peer|reset by peer|socket timeout"
    r"|DistNetworkError|DistBackendError|DistStoreError|heartbeat|SIGTERM|SignalException|timed out waiting"
    r"|NRT_TIMEOUT|status_code=5\b|status_code=1200|HW_ERR_COLLECTIVES|hang in collectives|Timeout waiting for RX",
    re.IGNORECASE,
)
"""Errors that the failure of another node may cause. Source of the errors of Neuron's runtime:
AWS Neuron documentation, neuron-runtime/nrt-troubleshoot.rst."""


class Failure(NamedTuple):
    """Why a command failed.

    Attributes:
        rank: Rank of the process within the whole job; None if the output has none.
        exit_code: Exit code of the process, or of the command.
        sentence: The problem, without its location.
        traceback: The traceback, and those that are chained to it; None if the output has none.
    """

    rank: int | None
    exit_code: int
    sentence: str
    traceback: str | None

    @property
    def may_be_a_consequence(self) -> bool:
        """Whether the failure of another node may be the cause."""
        return self.exit_code in (-signal.SIGTERM, 128 + signal.SIGTERM) or bool(CONSEQUENCE.search(self.sentence))


class Finder:
    """Finds the failure in the output. Call `feed` for every line."""

    def __init__(self) -> None:
        self._open: dict[int | None, list[str]] = {}
        self._chained: dict[int | None, str] = {}
        self._just_ended: set[int | None] = set()
        self._last: dict[int | None, tuple[int, list[str]]] = {}
        self._count = 0
        self._last_line = ""
        self._in_summary = False
        self._root: dict[str, int] = {}

    def feed(self, rank: int | None, line: str) -> None:
        of_torch = TORCH_RANK.match(line)
        if of_torch:
            rank, line = int(of_torch[1]), line[of_torch.end() :]
        line = line.rstrip()[:LONGEST_LINE]
        if rank is None:
            self._summary(line)
        if line.strip():
            self._last_line = line.strip()
        block = self._open.get(rank)
        if line.lstrip(".") == BEGIN:
            line = BEGIN
            words = self._chained.pop(rank, "")
            self._open[rank] = [*self._last[rank][1], "", words, "", line] if words else [line]
        elif block is None:
            self._just_ended.discard(rank)
            if line in CHAINED and rank in self._last:
                self._chained[rank] = line
            elif line:
                self._chained.pop(rank, None)
        elif line.startswith(" ") or not line:
            if len(block) < MAX_LINES:
                block.append(line)
        else:
            del self._open[rank]
            # That of a launcher follows that of its script at once.
            is_wrapper = line.startswith(OF_TORCHRUN) or (line.startswith(OF_CHILD) and rank in self._just_ended)
            if not is_wrapper:
                self._last[rank] = (self._count, [*block, line])
                self._count += 1
            self._just_ended.add(rank)

    def _summary(self, line: str) -> None:
        """Read the rank and exit code of the first failure from torchrun's summary."""
        if line.strip() == ROOT_CAUSE:
            self._in_summary, self._root = True, {}
        elif self._in_summary:
            for name, pattern in (("rank", r"^\s*rank\s*:\s*(\d+)"), ("exitcode", r"^\s*exitcode\s*:\s*(-?\d+)")):
                found = re.match(pattern, line)
                if found:
                    self._root[name] = int(found[1])

    def failure(self, exit_code: int) -> Failure:
        """The failure of the command with this exit code."""
        rank, code = self._root.get("rank"), exit_code
        lines: list[str] | None = None
        if rank is not None:
            code = self._root.get("exitcode", exit_code)
            if code > 0 and rank in self._last:
                lines = self._last[rank][1]
        elif self._last:
            # A rank may have caught earlier tracebacks, so only its last one counts. Of these, the first is the cause.
            rank, (_, lines) = min(self._last.items(), key=lambda item: item[1][0])
        if lines:
            return Failure(rank, code, lines[-1], "\n".join(lines))
        if code < 0:
            return Failure(rank, code, f"ended by signal {_signal(-code)}", None)
        last = f"; its last line: {self._last_line}" if self._last_line and rank is None else ""
        return Failure(rank, code, f"ended with exit code {code}{last}", None)


def full_disk(folder: Path) -> str:
    """A clause if the disk of a folder is full; otherwise empty.

    Output of processes may then be lost, because it passes through files of torchrun.
    """
    full = shutil.disk_usage(folder).free < LEAST_FREE_BYTES
    return "; no space is left on the disk of the job" if full else ""


def _signal(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        return str(number)
    return f"{number} ({name})" + (": out of memory?" if number == signal.SIGKILL else "")
