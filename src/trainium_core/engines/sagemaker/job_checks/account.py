"""What is asked about training jobs before one is started: its role, its image, its buckets, its stack."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from trainium_core.identity.caller import Identities
from trainium_core.permissions.simulation import Simulation
from trainium_core.prices.price import Prices
from trainium_core.storage.storage import Buckets
from trainium_runtime.quota import Quotas


@dataclass(frozen=True, kw_only=True)
class Role:
    """A role; `trusted_services` may assume it, such as sagemaker.amazonaws.com."""

    arn: str
    trusted_services: Collection[str]


class Roles(Simulation, Protocol):
    def role(self, name: str) -> Role | None: ...


class ContainerImages(Protocol):
    def has_image(self, *, account: str, region: str, repository: str, reference: Mapping[str, str]) -> bool:
        """Whether the repository holds the image; reference: {"imageTag": ...} or {"imageDigest": ...}."""
        ...


class SageMakerAccount(Identities, Quotas, Prices, Roles, ContainerImages, Buckets, Protocol):
    """All that is asked about a training job."""
