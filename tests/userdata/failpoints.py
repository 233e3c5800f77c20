"""SIGKILL at every point of an operation: before each call with which Python accesses the disk or the network."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

POINTS = frozenset(
    (
        *("open", "write", "close", "flush", "truncate", "fsync"),
        *("mkdir", "rename", "replace", "unlink", "remove", "rmdir", "utime", "symlink", "link", "chmod"),
        *("connect", "send", "sendall", "recv_into"),
    )
)
"""C functions and methods that change files, or wait for files and sockets."""
MAX_POINTS = 1000


def killed_everywhere(prepare: Callable[[], Callable[[], object]], *, changing: Path | None = None) -> Iterator[int]:
    """Yield each point in turn, after a process that ran the operation was killed there. End when a process completes.

    Args:
        prepare: Returns the operation.
        changing: The only folder that the operation changes, if there is one. Points at which the folder is unchanged
            since the last point are then skipped, because a killed process leaves the same state.
    """
    for point in range(MAX_POINTS):
        if not killed_at(point, prepare(), changing):
            assert point, "the operation has no points"
            return
        yield point
    raise AssertionError(f"the operation has more than {MAX_POINTS} points")


def killed_at(point: int, work: Callable[[], object], changing: Path | None = None) -> bool:
    """Run an operation in a separate process that is killed at this point. Returns False if the process completed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            points, last, lock = count(), None, threading.Lock()

            def kill(_frame: FrameType, event: str, called: Any) -> None:
                nonlocal last
                if event != "c_call" or called.__name__ not in POINTS:
                    return
                with lock:
                    before, last = last, _state(changing) if changing else None
                    if changing and before == last:
                        return
                    if next(points) >= point:
                        os.kill(os.getpid(), signal.SIGKILL)

            _profile(kill)
            work()
            code = 0
        finally:
            sys.setprofile(None)
            os._exit(code)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (0, -signal.SIGKILL), "the work failed by itself"
    return ended != 0


def _profile(look: Callable[[FrameType, str, Any], None]) -> None:
    threading.setprofile(look)
    sys.setprofile(look)


def _state(folder: Path) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    for above, _, names in os.walk(folder):
        found.append((above, 0, 0))
        for name in names:
            with suppress(FileNotFoundError):
                stat = os.lstat(f"{above}/{name}")
                found.append((f"{above}/{name}", stat.st_size, stat.st_mtime_ns))
    return found
