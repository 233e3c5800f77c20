"""The facts of all rules, and the target resource."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from moto.backends import get_backend
from moto.utilities.utils import get_partition

from trainium_local.services.errors import Refused

Properties = Mapping[str, Any]

FACTS: Mapping[str, Any] = tomllib.loads(files("trainium_local.rules").joinpath("rules.toml").read_text())


@dataclass(frozen=True, kw_only=True)
class Target:
    """The account and region of a resource, and whether it is new. `new` is False for an update."""

    account: str
    region: str
    new: bool

    def backend(self, service: str) -> Any:
        """Return moto's backend of a service, e.g. ec2, in the region; for a global service, in the partition."""
        regions: Any = get_backend(service)[self.account]  # pyright: ignore
        return regions[self.region if self.region in regions else get_partition(self.region)]


def refusal(fact: Mapping[str, Any], service: str, *values: Any, message: str | None = None) -> Refused:
    """Return the refusal for a fact of rules.toml, with `values` in its message, as CloudFormation's events show it."""
    words = message or fact["message"].format(*values)
    return Refused(fact["code"], f"{words} (Service: {service}, Status Code: 400, Error Code: {fact['code']})")


def listed(value: Any) -> list[Any]:
    """Return a list, for arguments that AWS accepts alone or in a list."""
    return value if isinstance(value, list) else [] if value is None else [value]
