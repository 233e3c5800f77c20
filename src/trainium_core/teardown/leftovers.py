"""What a teardown finds in an account, besides stacks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Something that runs and is billed, such as a job.

    Attributes:
        kind: The engine's name of the kind of workload, in the singular.
        work_id: The ID with which the engine stops the workload.
        stopping: Whether the workload is being stopped.
    """

    kind: str
    work_id: str
    stopping: bool = False


LeftoverKind = Literal["log group", "SSM parameter", "snapshot", "network interface"]


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A resource, usually outside every stack, that may belong to the cluster, with its tags."""

    kind: LeftoverKind
    resource_id: str
    tags: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class StoredBytes:
    """The amount of stored data.

    Attributes:
        count: Number of bytes.
        at_least: Whether more may be stored, for example because counting stopped before the end.
    """

    count: int
    at_least: bool = False
