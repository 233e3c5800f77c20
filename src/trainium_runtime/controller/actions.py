"""What the controller does, as values. `execution` executes them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainium_runtime.node_store import StoredMembership
from trainium_wire.membership import Membership


@dataclass(frozen=True, kw_only=True)
class PrintLine:
    """Write a line into the log of the function."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Resize:
    """Set the desired size of the group."""

    nodes: int


@dataclass(frozen=True, kw_only=True)
class MarkUnhealthy:
    """Have Auto Scaling replace an instance. It may have left the group since the snapshot."""

    instance: str
    why: str


@dataclass(frozen=True, kw_only=True)
class TagInstances:
    """Tag instances. EC2 may not list all of them any more."""

    instances: Sequence[str]
    tags: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class WriteMembership:
    """Write the membership, unless another invocation has changed it since the snapshot."""

    membership: Membership
    replacing: StoredMembership


@dataclass(frozen=True, kw_only=True)
class Publish:
    """Publish a notice to people."""

    subject: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Remember:
    """Store a value in a tag of the topic. None removes the tag."""

    tag: str
    value: str | None


@dataclass(frozen=True, kw_only=True)
class DeleteStack:
    """Have the stack deleted."""


Action = PrintLine | Resize | MarkUnhealthy | TagInstances | WriteMembership | Publish | Remember | DeleteStack


def _nothing(_reason: str) -> Sequence[Action]:
    return ()


@dataclass(frozen=True)
class Step:
    """Actions in their order. After a failed action, the rest of its step is not executed, but the next step is.

    Attributes:
        actions: Actions, and steps that fail with this one.
        otherwise: The actions to execute instead of the rest, from the reason of the failure.
    """

    actions: Sequence["Action | Step"]
    otherwise: Callable[[str], Sequence[Action]] = _nothing
