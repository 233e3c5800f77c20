"""The end of an attempt: one object, written by the first node that detects the end."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

from trainium_wire.job import SUCCEEDED, end_record
from trainium_wire.logs import file_logger

from .device_errors import DeviceErrors
from .launch import Launch
from .store import Store

_LOGGER = file_logger("trn_job")
RETRY_SECONDS = 2


class End:
    """The end of one attempt.

    Attributes:
        over: Set once this node has written or read the end.
        content: The end of the attempt, once `over` is set.
    """

    def __init__(self, launch: Launch, store: Store) -> None:
        self._launch, self._store = launch, store
        self._key = launch.keys.end
        self._errors = DeviceErrors()
        self.over = threading.Event()
        self.content: dict[str, Any] = {}

    def device_errors(self) -> list[str]:
        """The devices of this node that have counted uncorrectable errors in the attempt, once it ends, each as a
        sentence."""
        return self._errors.named()

    def poll(self) -> None:
        """Read the end, unless it is known. Raises OSError if S3 does not answer or refuses."""
        found = None if self.over.is_set() else self._store.read(self._key)
        if found is not None:
            self._set(found)

    def wait(self, seconds: float) -> None:
        """Wait until the end is known or the time is over, and then read the end."""
        self.over.wait(seconds)
        with contextlib.suppress(OSError):
            self.poll()

    def declare(
        self,
        result: str,
        reason: str,
        *,
        rank: int | None = None,
        exit_code: int | None = None,
        traceback: str | None = None,
    ) -> None:
        """Write the end, unless another node already has. Retries until it is written or read.

        Unless the attempt succeeded, the reason names the devices of this node that counted uncorrectable errors in it.

        Args:
            result: One of RESULTS of trainium_wire.job.
            reason: A sentence, for users.
            rank: Rank of the process that failed first, if known.
            exit_code: Exit code of that process, or of the command.
            traceback: Traceback of that process, if any.
        """
        own = end_record(
            result,
            "; ".join(filter(None, [reason, *([] if result == SUCCEEDED else self.device_errors())])),
            instance_id=self._launch.nodes[self._launch.rank]["instance_id"],
            node=self._launch.rank,
            rank=rank,
            exit_code=exit_code,
            traceback=traceback,
        )
        last_error = ""
        while not self.over.is_set():
            try:
                if self._store.create(self._key, own):
                    self._set(own)
                else:
                    self.poll()
            except OSError as error:
                if str(error) != last_error:
                    _LOGGER.warning("%s: %s", self._key, error)
                last_error = str(error)
            if not self.over.is_set():
                time.sleep(RETRY_SECONDS)

    def _set(self, content: dict[str, Any]) -> None:
        self.content = {"result": "failed", "reason": "", "node": None, **content}
        self.over.set()
