"""python -m tools.lab [MODULE ARGUMENT...]: run a Python module in the lab's namespaces, by default its tests."""

import fcntl
import signal
import subprocess
import sys
from pathlib import Path

from tools.lab.machine import CANNOT_RUN, NAMESPACES
from tools.lab.paths import FOLDER, REPOSITORY
from tools.lab.sweep import join, leave, sweep

TESTS = ("pytest", "-p", "no:cacheprovider", "--quiet", "-rs", "--durations=5", str(Path("tools", "lab", "tests")))


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another lab runs from this folder; one at a time", file=sys.stderr)
            return CANNOT_RUN
        # Clean up after these signals too, as after Ctrl-C.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        sweep()
        join()
        try:
            command = [*NAMESPACES, sys.executable, "-m", *(sys.argv[1:] or TESTS)]
            return subprocess.run(command, cwd=REPOSITORY, check=False).returncode
        except KeyboardInterrupt:
            return 130
        finally:
            leave()
            sweep()


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
