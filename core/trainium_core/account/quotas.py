"""What the account may run, and what of it is used."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class RunningInstance:
    """An instance that counts against a quota. `capacity` as in a plan; `cluster` is its tag trn:cluster, if any."""

    vcpus: int
    capacity: str
    cluster: str | None = None


class Quotas(Protocol):
    def quota_limit(self, code: str) -> float: ...

    def running_instances(self, family: str) -> Sequence[RunningInstance]: ...
