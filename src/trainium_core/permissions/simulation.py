"""What IAM's simulation of a principal's policies says of calls that were not made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Calls:
    """Actions on each of some resources. context: condition keys that the requests would have, with their values."""

    actions: Sequence[str]
    resources: Sequence[str]
    context: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True)
class Denial:
    """An action that is not allowed on all of the resources.

    missing_keys: condition keys that policies wait for, and that the request may have in earnest. by_organization,
    by_boundary: whether service control policies, or the permissions boundary, do not allow it.
    """

    action: str
    missing_keys: Sequence[str] = ()
    by_organization: bool = False
    by_boundary: bool = False


class Simulation(Protocol):
    def denials(self, principal: str, calls: Calls) -> Sequence[Denial]:
        """principal: ARN of a role, user or group. Raises UnavailableError, also where there is no such principal."""
        ...
