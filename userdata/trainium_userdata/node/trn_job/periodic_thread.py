"""Work that is done again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable

from trainium_wire.logs import logger_of

_LOGGER = logger_of("trn_job")


class PeriodicThread(threading.Thread):
    """Calls `work` at once and then every so many seconds, or `soon`, until `stop`.

    What it raises is printed, once for a row.
    """

    def __init__(self, name: str, work: Callable[[], object], seconds: Callable[[], float]) -> None:
        super().__init__(name=name, daemon=True)
        self.work, self.seconds = work, seconds
        self._due = threading.Event()
        self._is_stopped = False
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
            if self._is_stopped:
                return

    def soon(self) -> None:
        """Do not wait for the next time."""
        self._due.set()

    def stop(self) -> None:
        """Wait for work that is being done, and do no more."""
        self._is_stopped = True
        self._due.set()
        if self.is_alive():
            self.join()
