"""Results of IAM's policy simulation, as values and a protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Calls:
    """Requests to simulate: each action on each resource.

    Attributes:
        actions: Names of the actions.
        resources: ARNs of the resources.
        context: Condition keys of the requests, with their values.
    """

    actions: Sequence[str]
    resources: Sequence[str]
    context: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True)
class Denial:
    """An action that is denied on at least one of the resources.

    Attributes:
        action: Name of the action.
        missing_keys: Condition keys in policies for which the simulation had no value; real requests may have one.
        by_organization: Whether the organization's service control policies do not allow the action.
        by_boundary: Whether the permissions boundary does not allow the action.
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
            calls: The requests to simulate.

        Raises:
            UnavailableError: The principal does not exist, or a request failed or was denied.
        """
        ...
