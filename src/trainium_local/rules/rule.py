"""The facts of all rules, and what a rule may look at."""

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
    """Where a resource is to be; `new` is false if it is there already."""

    account: str
    region: str
    new: bool

    def backend(self, service: str) -> Any:
        """moto's state of a service, e.g. ec2, in the region; of a global service, in the partition."""
        regions: Any = get_backend(service)[self.account]  # pyright: ignore
        return regions[self.region if self.region in regions else get_partition(self.region)]


def refusal(fact: Mapping[str, Any], service: str, *values: Any, message: str | None = None) -> Refused:
    """The refusal by a fact of rules.toml, `values` in its message, in the form of CloudFormation's events."""
    words = message or fact["message"].format(*values)
    return Refused(fact["code"], f"{words} (Service: {service}, Status Code: 400, Error Code: {fact['code']})")


def listed(value: Any) -> list[Any]:
    """What AWS takes alone or in a list, as a list."""
    return value if isinstance(value, list) else [] if value is None else [value]
