"""The AWS requests of the checks, as protocols. `aws_account` and the fakes of the tests implement them.

Methods raise UnavailableError if a request fails or is denied. Methods for one resource return None if it
does not exist.
"""

from typing import Protocol

from trainium_core.capacity.offerings import RegionCapacity
from trainium_core.identity.caller import Identities
from trainium_core.images.image import Images
from trainium_core.network.vpc import Network, PlacementGroups
from trainium_core.permissions.simulation import Simulation
from trainium_core.prices.price import Prices
from trainium_core.quotas.resource_use import ResourceUse
from trainium_core.stacks.deployed_stack import Stacks
from trainium_core.storage.storage import Buckets, FileSystems, Volumes
from trainium_runtime.quota import Quotas


class Account(
    Identities,
    Quotas,
    ResourceUse,
    Images,
    Volumes,
    Network,
    PlacementGroups,
    RegionCapacity,
    Prices,
    Simulation,
    Stacks,
    FileSystems,
    Buckets,
    Protocol,
):
    """All requests of the checks."""

    def budgets_enabled(self, account: str) -> bool:
        """Whether the account can have budgets. In an organization, the management account enables them."""
        ...
