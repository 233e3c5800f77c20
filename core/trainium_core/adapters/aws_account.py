"""An AWS account in one region, asked through boto3. Nothing here changes anything."""

from trainium_core.adapters.buckets import AwsBuckets
from trainium_core.adapters.capacity import AwsCapacity
from trainium_core.adapters.file_systems import AwsFileSystems
from trainium_core.adapters.identity import AwsIdentities
from trainium_core.adapters.images import AwsImages
from trainium_core.adapters.network import AwsNetwork
from trainium_core.adapters.prices import AwsPrices
from trainium_core.adapters.stacks import AwsStacks
from trainium_core.adapters.volumes import AwsVolumes
from trainium_runtime.aws_quotas import AwsQuotas


class AwsAccount(
    AwsIdentities,
    AwsQuotas,
    AwsImages,
    AwsVolumes,
    AwsNetwork,
    AwsCapacity,
    AwsPrices,
    AwsStacks,
    AwsFileSystems,
    AwsBuckets,
):
    """Answers trainium_core.account.Account for the credentials that boto3 finds."""
