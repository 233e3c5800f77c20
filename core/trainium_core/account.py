"""What the checks ask of an AWS account in one region: answered by adapters.ec2_account, or by a fake in tests."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


class CannotTellError(Exception):
    """A question that got no answer; the message says why, and names the permission if one is missing."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """`endpoint` is where the answer came from when that is not AWS, else None."""

    account: str
    arn: str
    endpoint: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunningInstance:
    """An instance that counts against a quota. `capacity` as in a plan; `cluster` is its tag trn:cluster, if any."""

    vcpus: int
    capacity: str
    cluster: str | None = None


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image; `root_volume_gib` is the size its root volume has at least."""

    image_id: str
    state: str
    root_device_name: str
    root_volume_gib: int


class Account(Protocol):
    """Every method raises CannotTellError when there is no answer; None means that the thing does not exist."""

    def identity(self) -> Identity: ...

    def quota_limit(self, code: str) -> float: ...

    def running_instances(self, family: str) -> Sequence[RunningInstance]: ...

    def zones_offering(self, instance_type: str) -> Collection[str]: ...

    def subnet_zone(self, *, subnet_id: str, vpc_id: str) -> str | None: ...

    def parameter(self, name: str) -> str | None: ...

    def image(self, image_id: str) -> Image | None: ...

    def stack_status(self, name: str) -> str | None: ...
