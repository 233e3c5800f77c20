"""An AWS account in one region, read with boto3."""

from collections.abc import Collection

from trainium_core.capacity.aws_capacity import AwsCapacity
from trainium_core.identity.aws_caller import AwsIdentities
from trainium_core.images.aws_images import AwsImages
from trainium_core.network.aws_vpc import AwsNetwork, AwsPlacementGroups
from trainium_core.permissions.aws_simulation import AwsSimulation
from trainium_core.prices.aws_prices import AwsPrices
from trainium_core.stacks.aws_stacks import AwsStacks
from trainium_core.storage.aws_storage import AwsBuckets, AwsFileSystems, AwsVolumes
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_quotas import AwsQuotas


class AwsAccount(
    AwsIdentities,
    AwsQuotas,
    AwsImages,
    AwsVolumes,
    AwsNetwork,
    AwsPlacementGroups,
    AwsCapacity,
    AwsPrices,
    AwsSimulation,
    AwsStacks,
    AwsFileSystems,
    AwsBuckets,
):
    """Implements trainium_core.preflight.account.Account with boto3's default credentials."""

    def pcs_clusters(self) -> Collection[str]:
        with read_errors("pcs:ListClusters"):
            pages = self.client("pcs").get_paginator("list_clusters").paginate()
            return [cluster["name"] for page in pages for cluster in page["clusters"]]
        return []
