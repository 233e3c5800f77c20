"""An AWS account in one region, read with boto3."""

from trainium_core.capacity.aws_capacity import AwsCapacity
from trainium_core.identity.aws_caller import AwsIdentities
from trainium_core.images.aws_images import AwsImages
from trainium_core.network.aws_vpc import AwsNetwork, AwsPlacementGroups
from trainium_core.permissions.aws_simulation import AwsSimulation
from trainium_core.prices.aws_prices import AwsPrices
from trainium_core.quotas.aws_resource_use import AwsResourceUse
from trainium_core.spending.aws_budgets import AwsBudgets
from trainium_core.stacks.aws_stacks import AwsStacks
from trainium_core.storage.aws_storage import AwsBuckets, AwsFileSystems, AwsVolumes
from trainium_runtime.aws_quotas import AwsQuotas


class AwsAccount(
    AwsIdentities,
    AwsQuotas,
    AwsResourceUse,
    AwsBudgets,
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
