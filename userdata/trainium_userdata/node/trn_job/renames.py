"""Sees what is renamed into a folder."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from pathlib import Path

_MOVED_TO, _CREATE = 0x80, 0x100
_EVENT = struct.Struct("iIII")
_BUFFER_BYTES = 65536


class Renames:
    """The names that were renamed into a folder, by inotify(7). A watch that Linux refuses sees none.

    Args:
        folder: The folder, which exists.
    """

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._events = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        libc.inotify_add_watch(self._events, os.fsencode(folder), _MOVED_TO | _CREATE)

    def take(self) -> set[str]:
        """The names that were renamed into the folder since the last call, and not created there afterwards."""
        names: set[str] = set()
        with contextlib.suppress(OSError):
            while True:
                events, start = os.read(self._events, _BUFFER_BYTES), 0
                while start < len(events):
                    _, mask, _, length = _EVENT.unpack_from(events, start)
                    start += _EVENT.size + length
                    name = os.fsdecode(events[start - length : start].rstrip(b"\0"))
                    (names.add if mask & _MOVED_TO else names.discard)(name)
        return names
