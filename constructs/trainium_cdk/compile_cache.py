"""The S3 bucket where compiled graphs are kept, so that a graph is compiled once and not once per node and start."""

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.disposable_bucket import DisposableBucket, allow_objects
from trainium_core.naming import CACHE_PREFIX


class CompileCache(Construct):
    """A Neuron compile cache. `bucket` is the CDK object and `url` what NEURON_COMPILE_CACHE_URL is set to."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        bucket: s3.IBucket | None = None,
        retain: bool = False,
        expiration_days: int = 90,
        kms_key_arn: str | None = None,
    ) -> None:
        """
        bucket: an existing bucket. Default: a new one.
        retain: keep a new bucket and what is in it at destroy. Default: both are deleted.
        expiration_days: days after which a compiled graph expires from a new bucket. Default: 90. The compiler has no
            limit of its own, and graphs of an old compiler version are never read again.
        kms_key_arn: key that a new bucket's objects are encrypted with. Default: S3's own.
        """
        super().__init__(scope, construct_id)
        self.bucket = bucket or self._new_bucket(retain, expiration_days, kms_key_arn)
        self.url = f"s3://{self.bucket.bucket_name}/{CACHE_PREFIX}"

    def _new_bucket(self, retain: bool, expiration_days: int, kms_key_arn: str | None) -> s3.IBucket:
        rule = s3.LifecycleRule(
            prefix=f"{CACHE_PREFIX}/",
            expiration=Duration.days(expiration_days),
            abort_incomplete_multipart_upload_after=Duration.days(1),
        )
        store = DisposableBucket(self, "Store", retain=retain, lifecycle_rules=[rule], kms_key_arn=kms_key_arn)
        return store.bucket

    def grant_use(self, role: iam.IRole) -> None:
        """Allow a role what the cache client does: read, write, list and delete under the cache's prefix."""
        actions = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"]
        allow_objects(self.bucket, role, prefix=CACHE_PREFIX, actions=actions)
