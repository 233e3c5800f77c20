"""All that taking a cluster down asks and orders, for the credentials that boto3 finds. Only `trn destroy` uses it."""

from trainium_core.nodes.aws_groups import AwsNodeGroupControl
from trainium_core.nodes.aws_notices import AwsNodeNotices
from trainium_core.stacks.aws_control import AwsStackControl
from trainium_core.teardown.aws_buckets import AwsBucketControl
from trainium_core.teardown.aws_leftovers import AwsLeftovers
from trainium_core.teardown.aws_stored_sizes import AwsStoredSizes
from trainium_core.teardown.aws_workloads import AwsWorkloads


class AwsTeardown(
    AwsStackControl,
    AwsWorkloads,
    AwsNodeNotices,
    AwsNodeGroupControl,
    AwsBucketControl,
    AwsLeftovers,
    AwsStoredSizes,
):
    """Implements trainium_core.teardown.account.TeardownAccount."""
