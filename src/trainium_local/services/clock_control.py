"""Moves the clock of the embedded AWS forward: PUT an instant to CLOCK_PATH."""

import json
from collections.abc import Callable
from datetime import datetime

from werkzeug.wrappers import Request, Response

from trainium_local import clock
from trainium_local.services import schedules

_before_schedules: list[Callable[[], None]] = []


def when_put_forward(listener: Callable[[], None]) -> None:
    """Call `listener` each time the clock has moved forward, before due schedules run."""
    _before_schedules.append(listener)


def answer(request: Request) -> Response:
    """Answer requests to CLOCK_PATH with the time, and the names of the schedules that ran."""
    ran: list[str] = []
    if request.method == "PUT":
        try:
            clock.advance_to(datetime.fromisoformat(request.get_data(as_text=True).strip()).astimezone())
        except ValueError as error:
            return Response(str(error), 400)
        for listener in _before_schedules:
            listener()
        ran = schedules.run_due()
    return Response(json.dumps({"now": clock.now().isoformat(), "ran": ran}), mimetype="application/json")
