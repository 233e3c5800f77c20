"""GET and PUT of the whole state, at a moment in which nothing else goes on."""

import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any

from werkzeug.wrappers import Request, Response

from trainium_local.cloudformation.stack import _regions
from trainium_local.own_paths import WsgiApp
from trainium_local.services import schedules
from trainium_local_plugin.stand_in_nodes import USAGE_THREAD
from trainium_local_plugin.state import snapshot

TIMEOUT_SECONDS = 10.0
"""Seconds to wait for what goes on, such as a node that boots or a function."""

_IN_PROGRESS = tuple(f"{verb}_IN_PROGRESS" for verb in ("CREATE", "UPDATE", "DELETE", "ROLLBACK", "CLEANUP", "IMPORT"))
_IDLE = ("MainThread", "schedules", "process_request_thread", USAGE_THREAD)
"""Threads that change the state by requests alone, which are counted."""


class BusyError(Exception):
    """The message says what goes on."""


class _Gate:
    """Counts the requests that go on, and keeps others waiting while it is closed."""

    def __init__(self) -> None:
        self._changed, self._closed, self.requests = threading.Condition(), False, 0

    @contextmanager
    def request(self) -> Generator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self.requests += 1
        try:
            yield
        finally:
            with self._changed:
                self.requests -= 1

    @contextmanager
    def closed(self) -> Generator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._closed = True
        try:
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()


_gate = _Gate()


def counted(application: WsgiApp) -> WsgiApp:
    """An application whose requests all end before the state is taken or changed."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        with _gate.request():
            return application(environ, start_response)

    return answer


def answer(request: Request) -> Response:
    """Requests to STATE_PATH. Whoever may PUT there may run code: let only the owner through."""
    try:
        with _quiet():
            if request.method == "PUT":
                return Response(snapshot.load(request.get_data()))
            return Response(snapshot.take(), mimetype="application/octet-stream")
    except BusyError as error:
        return Response(str(error), 409)
    except Exception as error:
        return Response(f"the state cannot be saved or loaded: {error!r}", 500)


@contextmanager
def _quiet() -> Generator[None]:
    """A time in which no request, schedule, function or stack goes on. Raises BusyError if there is none soon."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        with _gate.closed():
            # Not waited for: a function that a schedule has called may itself wait for the gate.
            no_schedule = schedules._one_at_a_time.acquire(blocking=False)
            try:
                stacks, busy = _stacks_in_progress(), _others_in_progress()
                if no_schedule and not stacks and not busy:
                    yield
                    return
            finally:
                if no_schedule:
                    schedules._one_at_a_time.release()
        if stacks or time.monotonic() > deadline:
            raise BusyError(f"Not while something is in progress: {', '.join(stacks or busy)}. Try again later.")
        time.sleep(0.05)


def _stacks_in_progress() -> list[str]:
    stacks = [stack for region in _regions.values() for stack in region.stacks]
    return [f"stack {stack.name} is {stack.status}" for stack in stacks if stack.status.endswith(_IN_PROGRESS)]


def _others_in_progress() -> list[str]:
    threads = [thread.name for thread in threading.enumerate() if not any(name in thread.name for name in _IDLE)]
    return [*threads, f"{_gate.requests} requests"] if _gate.requests else threads
