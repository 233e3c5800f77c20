"""What the checks ask of an AWS account in one region: answered by adapters.aws_account, or by a fake in tests.

Every method raises UnavailableError when there is no answer; None means that the thing does not exist.
"""

from typing import Protocol

from trainium_core.account.buckets import Buckets
from trainium_core.account.capacity import Capacity
from trainium_core.account.file_systems import FileSystems
from trainium_core.account.identity import Identities, Identity
from trainium_core.account.images import Image, Images
from trainium_core.account.network import Network
from trainium_core.account.prices import Prices
from trainium_core.account.stacks import Stacks
from trainium_core.account.volumes import Volumes
from trainium_runtime.quota import Quotas


class Account(Identities, Quotas, Images, Volumes, Network, Capacity, Prices, Stacks, FileSystems, Buckets, Protocol):
    """All that can be asked, each part in a module of its own."""


__all__ = [
    "Account",
    "Identity",
    "Image",
]
