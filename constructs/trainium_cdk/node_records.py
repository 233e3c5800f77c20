"""Where nodes write what they found out about themselves."""

from aws_cdk import aws_iam as iam
from constructs import Construct

from trainium_cdk.disposable_bucket import DisposableBucket, allow_objects
from trainium_core.naming import RECORDS_PREFIX


class NodeRecords(Construct):
    """A bucket for node records that goes with the cluster. `url` is the folder the records are written to.

    S3 and not an API of a scheduler or of CloudFormation: nodes without any way out reach it over the gateway endpoint.
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.bucket = DisposableBucket(self, "Store").bucket
        self.prefix = RECORDS_PREFIX
        self.url = f"s3://{self.bucket.bucket_name}/{RECORDS_PREFIX}"

    def grant_write(self, role: iam.IRole) -> None:
        """Allow a role to write records, and not to read them."""
        allow_objects(self.bucket, role, prefix=RECORDS_PREFIX, actions=["s3:PutObject"])
