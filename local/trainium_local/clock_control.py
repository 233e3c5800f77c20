"""How a test puts the clock of the embedded AWS forward: PUT an instant at CLOCK_PATH."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from trainium_local import clock

CLOCK_PATH = "/_trn_local/clock"
"""GET: the time. PUT, with an instant such as 2026-12-01T18:00Z: put the clock forward, and answer once all schedules
that are due by then have run."""

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def with_clock(application: WsgiApp, run_due: Callable[[], list[str]]) -> WsgiApp:
    """Answer CLOCK_PATH in front of an application. `run_due` runs what is due, and tells what that was."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ.get("PATH_INFO") != CLOCK_PATH:
            return application(environ, start_response)
        ran: list[str] = []
        if environ["REQUEST_METHOD"] == "PUT":
            text = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode(errors="replace")
            try:
                clock.put_forward_to(datetime.fromisoformat(text.strip()).astimezone())
            except ValueError as error:
                start_response("400 Bad Request", [("Content-Type", "text/plain")])
                return [str(error).encode()]
            ran = run_due()
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps({"now": clock.now().isoformat(), "ran": ran}).encode()]

    return answer
