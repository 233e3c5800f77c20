"""Errors of AWS that replacements raise: `Refused`, and by name those of refusals.toml."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult

_REFUSALS: Mapping[str, Any] = tomllib.loads(files("trainium_local.services").joinpath("refusals.toml").read_text())


class Refused(ServiceException):
    """A request that AWS refuses.

    Args:
        code: AWS's error code.
        message: The message.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)


def refusal(name: str, **facts: Any) -> Refused:
    """Return the refusal `name` of refusals.toml, with `facts` in its message."""
    row = _REFUSALS[name]
    return Refused(row["code"], row["message"].format(**facts))


def call_action(original: Any, response: Any) -> Any:
    """Refuse actions that moto lacks. The refusal is in the service's protocol, so SDKs do not retry."""
    try:
        return original(response)
    except NotImplementedError:
        refused = Refused("InvalidAction", f"The embedded AWS does not support {response._get_action()}")
        _, headers, body = response.serialized(ActionResult(refused))
        return 501, headers, body
