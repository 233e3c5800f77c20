"""The sleep state of a stack, and the readiness of its fleet."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class SleepState:
    """The sleep state of a stack.

    Attributes:
        status: CloudFormation's status of the stack.
        asleep: Whether the stack sleeps; None without a sleep switch, as in some other apps' stacks.
        cluster: The cluster of its record, else in its tag, if any.
        created: Creation time of the stack.
        groups: Names of the Auto Scaling groups of the nodes.
    """

    status: str
    asleep: bool | None
    cluster: str | None
    created: datetime | None = None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """The readiness of a fleet after a deployment.

    Attributes:
        summary: A sentence without a period.
        verified_nodes: Number of verified nodes: 0 unless all wanted nodes are ready.
    """

    summary: str
    verified_nodes: int
