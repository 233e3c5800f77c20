"""SIGKILL at every point of a piece of work: before each call by which Python reaches the disk or the network."""

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

OUTER = ("posix", "_io", "io", "_socket")
"""Modules of C by which files and sockets are reached."""
POINTS = frozenset(
    (
        *("open", "write", "close", "flush", "truncate", "fsync"),
        *("mkdir", "rename", "replace", "unlink", "remove", "rmdir", "utime", "symlink", "link", "chmod"),
        *("connect", "send", "sendall", "recv_into"),
    )
)
"""Their functions and methods that change something or wait for it. `effects_between` finds one that is missing."""
MOST_POINTS = 1000


def killed_everywhere(prepare: Callable[[], Callable[[], object]], *, changing: Path | None = None) -> Iterator[int]:
    """Each point in turn, after a process was killed there that did what `prepare` gave; ends once one came through.

    changing: the only folder that the work changes, when it changes nothing else: then points before which that is as
    it was at the last one are left out. What a killed process leaves is the same.
    """
    for point in range(MOST_POINTS):
        if not killed_at(point, prepare(), changing):
            assert point, "there is no point in it"
            return
        yield point
    raise AssertionError(f"it has more than {MOST_POINTS} points")


def killed_at(point: int, work: Callable[[], object], changing: Path | None = None) -> bool:
    """Do it in a process of its own that is killed at this point. False: it came through."""
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


def effects_between(folder: Path, work: Callable[[], object]) -> set[str]:
    """What was called when the folder was seen to have changed a second time since the last point."""
    found: set[str] = set()
    seen, has_changed = _state(folder), False
    lock = threading.Lock()

    def look(_frame: FrameType, event: str, called: Any) -> None:
        nonlocal seen, has_changed
        if event in ("c_call", "c_return") and _owner(called) in OUTER:
            with lock:
                before, seen = seen, _state(folder)
                if seen != before:
                    if has_changed:
                        found.add(called.__name__)
                    has_changed = True
                if event == "c_call" and called.__name__ in POINTS:
                    has_changed = False

    _profile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def _profile(look: Callable[[FrameType, str, Any], None]) -> None:
    threading.setprofile(look)
    sys.setprofile(look)


def _owner(called: Any) -> str:
    """The module of a function, or of the class of a method."""
    owner = called.__self__
    return str(getattr(owner, "__name__", "") or type(owner).__module__)


def _state(folder: Path) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    for above, _, names in os.walk(folder):
        found.append((above, 0, 0))
        for name in names:
            with suppress(FileNotFoundError):
                stat = os.lstat(f"{above}/{name}")
                found.append((f"{above}/{name}", stat.st_size, stat.st_mtime_ns))
    return found
