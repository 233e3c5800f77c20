"""Periodic work in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

from trainium_wire.logs import file_logger

_LOGGER = file_logger("trn_job")


class PeriodicThread(threading.Thread):
    """Calls `work` at once, then after each interval or call of `soon`, until `stop`.

    Logs the errors of `work`, and that it works again. An error that occurs several times in a row is logged once.

    Args:
        name: Name of the thread, for the log.
        work: Does the work. Errors do not end the thread.
        seconds: Returns the interval in seconds.
    """

    def __init__(self, name: str, work: Callable[[], object], seconds: Callable[[], float]) -> None:
        super().__init__(name=name, daemon=True)
        self.work, self.seconds = work, seconds
        self._due = threading.Event()
        self._stop_requested = False  # Not `_is_stopped`, which Thread itself may have.
        self._error = ""

    def run(self) -> None:
        while True:
            message = ""
            try:
                self.work()
            except Exception as error:
                message = f"{type(error).__name__}: {error}"
            if message != self._error:
                _LOGGER.info("%s: %s", self.name, message or "works again")
            self._error = message
            self._due.wait(self.seconds())
            self._due.clear()
            if self._stop_requested:
                return

    def soon(self) -> None:
        """Call `work` without waiting for the interval."""
        self._due.set()

    def stop(self) -> None:
        """End the thread after the current call of `work`, and wait until it has ended."""
        self._stop_requested = True
        self._due.set()
        if self.is_alive():
            self.join()
