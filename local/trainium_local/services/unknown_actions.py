"""Actions that moto lacks are refused in the form of their API: the server has not failed, and no SDK is to retry."""

from typing import Any

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, BaseResponse

_moto_call_action: Any = BaseResponse.call_action


class _UnknownActionError(ServiceException):
    code = "InvalidAction"


def call_action(response: Any) -> Any:
    try:
        return _moto_call_action(response)
    except NotImplementedError:
        refusal = _UnknownActionError(f"The embedded AWS does not know {response._get_action()}")
        _, headers, body = response.serialized(ActionResult(refusal))
        return 501, headers, body
