"""Work that is done again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable


class PeriodicThread(threading.Thread):
    """Calls `work` at once and then every so many seconds, until `stop`. What it raises is printed, once for a row."""

    def __init__(self, name: str, work: Callable[[], object], seconds: Callable[[], float]) -> None:
        super().__init__(name=name, daemon=True)
        self.work, self.seconds = work, seconds
        self._stopped = threading.Event()
        self._error = ""

    def run(self) -> None:
        while True:
            message = ""
            try:
                self.work()
            except Exception as error:
                message = f"{type(error).__name__}: {error}"
            if message != self._error:
                print(f"{self.name}: {message or 'works again'}", flush=True)
            self._error = message
            if self._stopped.wait(self.seconds()):
                return

    def stop(self) -> None:
        """Wait for work that is being done, and do no more."""
        self._stopped.set()
        if self.is_alive():
            self.join()
