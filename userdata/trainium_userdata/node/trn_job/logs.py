"""Stores the log of a job in S3, in parts."""

from __future__ import annotations

import threading
from collections.abc import Callable

from trainium_wire.logs import file_logger

_LOGGER = file_logger("trn_job")
PART_BYTES = 1024 * 1024
MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of the lines that wait for S3. Later lines are counted and dropped."""


class Log:
    """The log of a node.

    Args:
        send: Stores the part with the given number. After its error, the next call of the method `send` stores the
            lines again under the same number.

    Attributes:
        parts: Number of stored parts.
    """

    def __init__(self, send: Callable[[int, bytes], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._lines: list[bytes] = []
        self._bytes = self._dropped = 0
        self.parts = 0

    def add(self, rank: int | None, line: str) -> None:
        text = (line if rank is None else f"[rank {rank}] {line}").encode(errors="replace") + b"\n"
        with self._lock:
            if self._bytes + len(text) > MAX_BYTES:
                self._dropped += 1
                return
            self._note_dropped()
            self._append(text)

    def say(self, text: str) -> None:
        """Write a line of this program."""
        _LOGGER.info("%s", text)
        self.add(None, f"[trn] {text}")

    def send(self) -> None:
        """Store all lines. Raises OSError."""
        with self._sending:
            while True:
                with self._lock:
                    if not self._lines:
                        self._note_dropped()
                    lines: list[bytes] = []
                    size = 0
                    for line in self._lines:
                        if lines and size + len(line) > PART_BYTES:
                            break
                        lines.append(line)
                        size += len(line)
                if not lines:
                    return
                self._send(self.parts, b"".join(lines))
                self.parts += 1
                with self._lock:
                    del self._lines[: len(lines)]
                    self._bytes -= size

    def _note_dropped(self) -> None:
        if self._dropped:
            self._append(f"[trn] lines dropped while S3 did not store the log: {self._dropped}\n".encode())
            self._dropped = 0

    def _append(self, line: bytes) -> None:
        self._lines.append(line)
        self._bytes += len(line)
