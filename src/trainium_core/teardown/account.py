"""The AWS requests of a teardown, as a protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from trainium_core.nodes.groups import NoticeAccount
from trainium_core.stacks.description import Stacks


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Something that runs, and is billed.

    Attributes:
        kind: The engine's name of it, in the singular.
        stopping: Whether it has been stopped, and is ending.
    """

    kind: str
    work_id: str
    stopping: bool = False


LeftoverKind = Literal["log group", "SSM parameter", "snapshot", "network interface"]


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A resource outside every stack that may belong to the cluster, with its tags."""

    kind: LeftoverKind
    resource_id: str
    tags: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class StoredBytes:
    """The amount of stored data. `at_least`: counting stopped before the end."""

    count: int
    at_least: bool = False


class TeardownAccount(Stacks, NoticeAccount, Protocol):
    """All requests. Reads raise UnavailableError, changes RequestRefusedError."""

    def running_workloads(
        self, *, engines: Sequence[str], cluster: str, state_machines: Sequence[str]
    ) -> Sequence[Workload]:
        """Running workloads of the cluster on these engines, by name and tag."""
        ...

    def stop(self, work: Workload) -> None: ...

    def bucket_tags(self, name: str) -> Mapping[str, str]:
        """Empty also for a missing bucket."""
        ...

    def delete_some(self, bucket: str) -> int:
        """Delete one request's worth of versions, delete markers and unfinished uploads; 0 if the bucket is empty."""
        ...

    def delete_bucket(self, name: str) -> None: ...

    def candidates(self, kind: LeftoverKind, *, cluster: str, stack_names: Sequence[str]) -> Sequence[Leftover]:
        """Log groups by stack name, other resources by the cluster's tag; only unattached network interfaces."""
        ...

    def delete_leftover(self, leftover: Leftover) -> None: ...

    def stored(self, kind: str, resource_id: str) -> StoredBytes | None:
        """The stored or billed size of a bucket or file system; None if it does not exist."""
        ...

    def imported_models(self, cluster: str) -> Sequence[str]:
        """ARNs of the models that the cluster handed over to Bedrock, according to the tag index."""
        ...
