"""Work that is done again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Repeating(threading.Thread):
    """Calls `work` at once and then every so many seconds, until `stop`. What it raises is printed, once for a row."""

    def __init__(self, name: str, work: Callable[[], object], seconds: Callable[[], float]) -> None:
        super().__init__(name=name, daemon=True)
        self._work, self._seconds = work, seconds
        self._end = threading.Event()
        self._trouble = ""

    def run(self) -> None:
        while True:
            trouble = ""
            try:
                self._work()
            except Exception as error:
                trouble = f"{type(error).__name__}: {error}"
            if trouble != self._trouble:
                print(f"{self.name}: {trouble or 'works again'}", flush=True)
            self._trouble = trouble
            if self._end.wait(self._seconds()):
                return

    def stop(self) -> None:
        """Wait for work that is being done, and do no more."""
        self._end.set()
        if self.is_alive():
            self.join()
