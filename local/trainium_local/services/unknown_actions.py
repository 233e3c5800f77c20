"""Actions that moto lacks are refused in the form of their API: the server has not failed, and no SDK is to retry."""

from typing import Any

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult


class _UnknownActionError(ServiceException):
    code = "InvalidAction"


def call_action(original: Any, response: Any) -> Any:
    try:
        return original(response)
    except NotImplementedError:
        refusal = _UnknownActionError(f"The embedded AWS does not know {response._get_action()}")
        _, headers, body = response.serialized(ActionResult(refusal))
        return 501, headers, body
