"""Results of IAM's policy simulation, as values and a protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Calls:
    """Actions to simulate, each on all resources. `context`: condition keys of the requests, with their values."""

    actions: Sequence[str]
    resources: Sequence[str]
    context: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True)
class Denial:
    """An action that is not allowed on all of the resources.

    Attributes:
        missing_keys: Condition keys in policies that the simulation had no values for, but real requests may have.
        by_organization: Whether a service control policy does not allow it.
        by_boundary: Whether the permissions boundary does not allow it.
    """

    action: str
    missing_keys: Sequence[str] = ()
    by_organization: bool = False
    by_boundary: bool = False


class Simulation(Protocol):
    def denials(self, principal: str, calls: Calls) -> Sequence[Denial]:
        """The actions that IAM does not allow.

        Args:
            principal: ARN of a role, user or group.
            calls: The actions.

        Raises:
            UnavailableError: IAM does not answer, or the principal does not exist.
        """
        ...
