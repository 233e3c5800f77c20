"""Errors in the words of AWS, raised by the replaced behaviours: refusals.toml."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from moto.core.exceptions import ServiceException

_REFUSALS: Mapping[str, Any] = tomllib.loads(files("trainium_local.services").joinpath("refusals.toml").read_text())


class Refused(ServiceException):
    """A request that AWS refuses. `code` is AWS's error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)


def refusal(name: str, **facts: Any) -> Refused:
    """A refusal of refusals.toml, the facts in its message."""
    row = _REFUSALS[name]
    return Refused(row["code"], row["message"].format(**facts))
