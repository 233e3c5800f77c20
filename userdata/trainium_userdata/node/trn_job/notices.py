"""Notices that this node, or another node of the job, will be interrupted."""

from __future__ import annotations

import contextlib
import json
import signal
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from trainium_wire.formats import moment

from . import processes
from .launch import Launch
from .store import Store


class Notices:
    """The notices to the nodes of one attempt.

    Attributes:
        announced: The notice that a node of the job will be interrupted soon, or None.
        is_handled: Whether a process of the job handles the signal of notices. A job without such a process does not
            stop because of a notice.
    """

    def __init__(self, launch: Launch, store: Store) -> None:
        self._launch, self._store = launch, store
        self._key = launch.keys.notice
        self._is_published = False
        self.announced: dict[str, Any] | None = None
        self.is_handled = False

    def poll(self) -> None:
        """Publish a notice to this node for the others; after a notice to another node, signal the processes here.

        The watch, which writes the notice file, has already signalled this node's processes. Raises OSError if S3
        does not answer or refuses.
        """
        # Before there is a notice, too: the watch signals first, and a process may end at once.
        self.is_handled = self.is_handled or bool(processes.handling_notices())
        own = self._own()
        if own:
            self.announced = self.announced or own
            if not self._is_published:
                self._store.create(self._key, own)
                self._is_published = True
            return
        found = None if self._is_published else self._store.read(self._key)
        if found:
            self.announced, self._is_published = found, True
            processes.notify()

    @property
    def reason(self) -> str:
        """The reason and the time of the interruption."""
        announced = self.announced or {}
        return f"{announced.get('reason')}, {announced.get('at') or 'at any moment'}"

    def end_attempt(self, exit_code: int | None, *, is_lost: bool, may_be_a_consequence: bool) -> bool:
        """Whether the attempt ends because of a notice.

        Args:
            exit_code: Exit code of the command; None while it is running.
            is_lost: Whether this node is shutting down.
            may_be_a_consequence: Whether the failure of another node may be the cause of the exit code.
        """
        with contextlib.suppress(OSError):
            self.poll()
        if not self.announced:
            return False
        if is_lost or exit_code == -signal.SIGTERM:
            return True
        return self.is_handled if exit_code == 0 else may_be_a_consequence

    def _own(self) -> dict[str, Any] | None:
        """The notice to this node, if the interruption is near; None without one."""
        try:
            notice = json.loads(Path(self._launch.notice_file).read_text()) if self._launch.notice_file else None
            if not notice:
                return None
            at = notice["at"] and moment(notice["at"])
        except (OSError, ValueError, LookupError, TypeError):
            return None
        if at and (at - datetime.now(timezone.utc)).total_seconds() > self._launch.notice_seconds:
            return None
        return {"node": self._launch.rank, "kind": notice["kind"], "reason": notice["reason"], "at": notice["at"]}
