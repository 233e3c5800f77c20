"""What the checks ask of an AWS account in one region: answered by preflight.aws_account, or by a fake in tests.

Every method raises UnavailableError when there is no answer; None means that the thing does not exist.
"""

from typing import Protocol

from trainium_core.capacity.offerings import Capacity
from trainium_core.identity.caller import Identities
from trainium_core.images.image import Images
from trainium_core.network.vpc import Network, PlacementGroups
from trainium_core.permissions.simulation import Simulation
from trainium_core.prices.price import Prices
from trainium_core.quotas.resource_use import ResourceUse
from trainium_core.spending.budgets import Budgets
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
    Capacity,
    Prices,
    Budgets,
    Simulation,
    Stacks,
    FileSystems,
    Buckets,
    Protocol,
):
    """All that can be asked, each part in a module of its own."""
