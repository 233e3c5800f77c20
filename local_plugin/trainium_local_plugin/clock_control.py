"""How a test puts the clock of the embedded AWS forward: PUT an instant at CLOCK_PATH."""

import json
from datetime import datetime

from werkzeug.wrappers import Request, Response

from trainium_local import clock
from trainium_local.services import schedules


def answer(request: Request) -> Response:
    """Requests to CLOCK_PATH."""
    ran: list[str] = []
    if request.method == "PUT":
        try:
            clock.put_forward_to(datetime.fromisoformat(request.get_data(as_text=True).strip()).astimezone())
        except ValueError as error:
            return Response(str(error), 400)
        ran = schedules.run_due()
    return Response(json.dumps({"now": clock.now().isoformat(), "ran": ran}), mimetype="application/json")
