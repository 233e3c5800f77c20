"""EC2 GetConsoleOutput with the output that was PUT for the instance. moto returns one text for all instances."""

from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.utils import Base64EncodedString
from werkzeug.wrappers import Request, Response

LONGEST = 65_536
"""Number of characters that are kept, the newest (EC2 documentation, GetConsoleOutput: 64 KB)."""

_outputs: dict[str, str] = {}


def answer(request: Request) -> Response:
    """Answer PUT requests at /<instance ID>, which set the console output of the instance."""
    _outputs[request.path.rpartition("/")[2]] = request.get_data(as_text=True)[-LONGEST:]
    return Response(status=204)


def get_console_output(response: Any) -> ActionResult:
    instance = response.ec2_backend.get_instance(response._get_param("InstanceId"))
    output = Base64EncodedString.from_raw_string(_outputs.get(instance.id, ""))
    return ActionResult({"InstanceId": instance.id, "Timestamp": utcnow(), "Output": output})
