"""All that taking a cluster down asks and orders, for the credentials that boto3 finds. Only `trn destroy` uses it."""

from trainium_core.adapters.bucket_control import AwsBucketControl
from trainium_core.adapters.leftovers import AwsLeftovers
from trainium_core.adapters.node_group_control import AwsNodeGroupControl
from trainium_core.adapters.node_notices import AwsNodeNotices
from trainium_core.adapters.stack_control import AwsStackControl
from trainium_core.adapters.stored_sizes import AwsStoredSizes
from trainium_core.adapters.work_control import AwsWorkControl


class AwsTeardown(
    AwsStackControl,
    AwsWorkControl,
    AwsNodeNotices,
    AwsNodeGroupControl,
    AwsBucketControl,
    AwsLeftovers,
    AwsStoredSizes,
):
    """Answers trainium_core.account.teardown.TeardownAccount."""
