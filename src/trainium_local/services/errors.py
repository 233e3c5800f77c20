"""Errors of AWS that replacements raise: `Refused`, or `refusal` for those of refusals.toml."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult

_REFUSALS: Mapping[str, Any] = tomllib.loads(files("trainium_local.services").joinpath("refusals.toml").read_text())


class Refused(ServiceException):
    """AWS's error for a request that it refuses."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)


def refusal(name: str, **facts: Any) -> Refused:
    """Return the refusal `name` of refusals.toml, with `facts` in its message."""
    row = _REFUSALS[name]
    return Refused(row["code"], row["message"].format(**facts))


def call_action(original: Any, response: Any) -> Any:
    """Refuse actions that moto lacks, in the service's protocol, and with HTTP 501, which SDKs do not retry."""
    try:
        return original(response)
    except NotImplementedError:
        refused = Refused("InvalidAction", f"The embedded AWS does not support {response._get_action()}")
        _, headers, body = response.serialized(ActionResult(refused))
        return 501, headers, body
