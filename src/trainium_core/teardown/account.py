"""The AWS requests of a teardown, as a protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from trainium_core.nodes.groups import NoticeAccount
from trainium_core.stacks.description import StackDescriptions


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


class TeardownAccount(StackDescriptions, NoticeAccount, Protocol):
    """The requests of a teardown. Reads raise UnavailableError, changes RequestRefusedError."""

    def running_workloads(
        self, *, engines: Sequence[str], cluster: str, state_machines: Sequence[str]
    ) -> Sequence[Workload]:
        """The running workloads of the cluster on these engines."""
        ...

    def stop(self, work: Workload) -> None: ...

    def bucket_tags(self, name: str) -> Mapping[str, str]:
        """The tags of a bucket; empty without tags or without the bucket."""
        ...

    def delete_some(self, bucket: str) -> int:
        """Delete as many versions and delete markers, or else unfinished uploads, as one request lists.

        Returns:
            The number of deleted entries; 0 if the bucket is empty or does not exist.
        """
        ...

    def delete_bucket(self, name: str) -> None: ...

    def candidates(self, kind: LeftoverKind, *, cluster: str, stack_names: Sequence[str]) -> Sequence[Leftover]:
        """Resources that may belong to the cluster.

        Log groups are found by the names of stacks and services, other resources by the cluster's tag. Attached network
        interfaces are not included.
        """
        ...

    def delete_leftover(self, leftover: Leftover) -> None: ...

    def stored(self, kind: str, resource_id: str) -> StoredBytes | None:
        """The data in a bucket or EFS file system, or the capacity of an FSx file system; None if it does not exist."""
        ...
