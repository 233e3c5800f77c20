"""python -m tools.lab [MODULE ARGUMENT...]: run a Python module in separate namespaces, by default the lab's tests."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from tools.lab.machine import CANNOT_RUN, NAMESPACES
from tools.lab.paths import FOLDER, PART, REPOSITORY, RUNS
from tools.lab.sweep import join, leave, sweep

LOCK = Path("/run/lock/trnlab")
"""Held while a lab runs. `sweep` ends the nodes of every checkout, so a second lab does not start."""

_INOTIFY_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
PYTEST = ("pytest", "-p", "no:cacheprovider", "--quiet", "-rs", "--durations=5")


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    with LOCK.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another lab is running on this machine, in {LOCK.read_text()}: wait for its end", file=sys.stderr)
            return CANNOT_RUN
        lock.truncate(0)
        print(REPOSITORY, end="", file=lock, flush=True)
        # Clean up after these signals too, as after Ctrl-C.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        sweep()
        shutil.rmtree(RUNS, ignore_errors=True)
        join()
        try:
            with _many_inotify_instances():
                if module := sys.argv[1:]:
                    return subprocess.run(_command(*module), cwd=REPOSITORY, check=False).returncode
                return _run_tests()
        except KeyboardInterrupt:
            return 130
        finally:
            leave()
            sweep()


@contextmanager
def _many_inotify_instances() -> Generator[None]:
    """Raise root's limit of inotify instances while the lab runs, if this machine allows it.

    systemd on each node needs several. Linux's default of 128 is not enough for the nodes of three labs.
    """
    limit = _INOTIFY_LIMIT.read_text()
    with suppress(OSError):
        _INOTIFY_LIMIT.write_text(str(max(int(limit), 4096)))
    try:
        yield
    finally:
        with suppress(OSError):
            _INOTIFY_LIMIT.write_text(limit)


def _run_tests() -> int:
    """Run the tests in three labs at the same time, because they mostly wait for nodes. One shows its output live."""
    folder = Path(__file__).parent / "tests"
    cluster = {folder / f"test_{name}.py" for name in ("jobs", "saves", "whole_loop")}  # They share a deployed cluster.
    slurm = set(folder.glob("test_slurm*.py"))
    nodes = set(folder.glob("test_*.py")) - cluster - slurm
    with TemporaryFile("w+") as of_slurm, TemporaryFile("w+") as of_nodes:
        running = [_start("slurm", slurm, of_slurm), _start("nodes", nodes, of_nodes), _start("cluster", cluster)]
        codes = [process.wait() for process in running]
        for output in (of_slurm, of_nodes):
            output.seek(0)
            print(output.read(), end="")
    return max(map(abs, codes))


def _start(part: str, tests: Iterable[Path], output: IO[str] | None = None) -> subprocess.Popen[bytes]:
    environment = {**os.environ, PART: part}
    return subprocess.Popen(
        _command(*PYTEST, *map(str, sorted(tests))), cwd=REPOSITORY, env=environment, stdout=output, stderr=output
    )


def _command(*module: str) -> list[str]:
    return [*NAMESPACES, sys.executable, "-m", *module]


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
