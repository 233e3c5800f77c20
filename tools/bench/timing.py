"""How long commands take, in seconds of the wall clock or of processors: several runs, medians."""

import resource
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median


class CannotMeasureError(Exception):
    """A command that was to be measured failed; the message holds what it said."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command to measure, run in `folder`."""

    words: tuple[str, ...]
    folder: Path

    def run(self) -> None:
        """Raises CannotMeasureError when the command does not succeed."""
        run = subprocess.run(
            self.words,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if run.returncode:
            raise CannotMeasureError(f"{' '.join(self.words)}: exit code {run.returncode}\n{run.stdout}")


Clock = Callable[[], float]


def processors() -> float:
    """A clock that goes while commands compute, in user or system mode, and counts every processor."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(action: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    started = clock()
    action()
    return clock() - started


def medians(first: Command, second: Command, *, runs: int, clock: Clock = time.perf_counter) -> tuple[float, float]:
    """Median seconds of two commands run in turn, so that a busy moment hits both. A first round is not counted."""
    first.run()
    second.run()
    taken = [(seconds(first.run, clock), seconds(second.run, clock)) for _ in range(runs)]
    return median(one for one, _ in taken), median(other for _, other in taken)
