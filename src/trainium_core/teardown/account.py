"""What taking a cluster down asks of an account, and changes there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from trainium_core.nodes.groups import NoticeAccount
from trainium_core.stacks.description import Stacks


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Something that runs, and is billed.

    `kind`: what its engine calls it, in the singular. `stopping`: it has been stopped, and is ending.
    """

    kind: str
    work_id: str
    stopping: bool = False


class Workloads(Protocol):
    def running_workloads(
        self, *, engines: Sequence[str], cluster: str, state_machines: Sequence[str]
    ) -> Sequence[Workload]:
        """What runs of the cluster by these engines, such as jobs with its name and tag. Raises UnavailableError."""
        ...

    def stop(self, work: Workload) -> None: ...


class Buckets(Protocol):
    def bucket_tags(self, name: str) -> Mapping[str, str]:
        """Empty for a bucket that does not exist, too."""
        ...

    def delete_some(self, bucket: str) -> int:
        """Delete versions, delete markers and unfinished uploads, as many as one request takes; 0: it is empty."""
        ...

    def delete_bucket(self, name: str) -> None: ...


LeftoverKind = Literal["log group", "SSM parameter", "snapshot", "network interface"]


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A resource outside every stack that may be ours, with the tags that decide."""

    kind: LeftoverKind
    resource_id: str
    tags: Mapping[str, str]


class Leftovers(Protocol):
    def candidates(self, kind: LeftoverKind, *, cluster: str, stack_names: Sequence[str]) -> Sequence[Leftover]:
        """Log groups by the names of the stacks, all else by the cluster's tag; interfaces only if nothing has them."""
        ...

    def delete_leftover(self, leftover: Leftover) -> None: ...


@dataclass(frozen=True, kw_only=True)
class StoredBytes:
    """How much something holds. `at_least`: there is more, which was not counted."""

    count: int
    at_least: bool = False


class StoredSizes(Protocol):
    def stored(self, kind: str, resource_id: str) -> StoredBytes | None:
        """What a bucket or a file system holds, or is billed for; None when it does not exist."""
        ...


class TeardownAccount(Stacks, Workloads, NoticeAccount, Buckets, Leftovers, StoredSizes, Protocol):
    """All of it. What reads raises UnavailableError without an answer, what changes RequestRefusedError."""
