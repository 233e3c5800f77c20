"""Whether this node is in use, for the functions that end nodes which are not used."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from trainium_wire.usage import NodeUsage, State

from .device_use import device_users
from .objects import Objects

SECONDS = 60
"""How often it is looked at."""

SEND_SECONDS = 240
"""How old what S3 holds becomes: whoever reads it takes older than some of these for unknown."""

NAMED = 3
"""Processes that are named."""


class Usage:
    """`poll` looks, and writes what changed, or is old. How long nobody used the node is counted by its looks, so that
    a clock that is set does not end it."""

    def __init__(self, s3: Objects) -> None:
        self._s3 = s3
        self._idle_seconds = 0.0
        self._polled_at = 0.0
        self._sent: tuple[str, str] = ("", "")
        self._sent_at = 0.0

    def poll(self, url: str, job: str, now: float) -> None:
        """url: of the object. job: the one that is not over, if any. now: seconds since 1970. Raises OSError."""
        state, detail = _state(job)
        elapsed = min(max(now - self._polled_at, 0), 2 * SECONDS) if self._polled_at else 0
        self._idle_seconds = self._idle_seconds + elapsed if state == self._sent[0] == "idle" else 0
        self._polled_at = now
        if (state, detail) != self._sent or not 0 <= now - self._sent_at < SEND_SECONDS:
            self._send(url, state, detail, now)

    def _send(self, url: str, state: State, detail: str, now: float) -> None:
        idle = timedelta(seconds=self._idle_seconds)
        usage = NodeUsage(state, datetime.fromtimestamp(now, UTC), idle, detail)
        self._s3.put(url, usage.to_json().encode())
        self._sent, self._sent_at = (state, detail), now


def _state(job: str) -> tuple[State, str]:
    if job:
        return "in-use", job
    try:
        users = device_users()
    except OSError as error:
        return "unknown", f"who uses the Neuron devices is not known: {error}"
    if users:
        more = [f"and {len(users) - NAMED} others"] * (len(users) > NAMED)
        return "in-use", ", ".join(users[:NAMED] + more)
    return "idle", ""
