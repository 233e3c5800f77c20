"""Where training jobs find their source and leave checkpoints and models."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_iam as iam
from constructs import Construct

from trainium_cdk.cdk_types import Key
from trainium_cdk.storage.disposable_bucket import DisposableBucket, allow_objects
from trainium_core.naming import CHECKPOINT_PREFIX, OUTPUT_PREFIX, SOURCE_PREFIX


class TrainingStore(Construct):
    """A bucket with a folder each for source, checkpoints and output. The URLs are those of the folders."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        encryption_key: Key | None = None,
    ) -> None:
        """
        removal_policy: DESTROY deletes the bucket, trained models and all; others keep it. Default: DESTROY.
        encryption_key: key that its objects are encrypted with. Default: S3's own.
        """
        super().__init__(scope, construct_id)
        store = DisposableBucket(self, "Store", removal_policy=removal_policy, encryption_key=encryption_key)
        self.bucket = store.bucket
        self.source_url = self._url(SOURCE_PREFIX)
        self.checkpoint_url = self._url(CHECKPOINT_PREFIX)
        self.output_url = self._url(OUTPUT_PREFIX)

    def _url(self, prefix: str) -> str:
        return f"s3://{self.bucket.bucket_name}/{prefix}"

    def grant_training(self, role: iam.IRole) -> None:
        """Allow a role what a job does: read source, write and read back checkpoints, write models."""
        reading = ["s3:GetObject", "s3:ListBucket"]
        allow_objects(
            self.bucket,
            role,
            {
                SOURCE_PREFIX: reading,
                CHECKPOINT_PREFIX: [*reading, "s3:PutObject", "s3:DeleteObject"],
                OUTPUT_PREFIX: ["s3:PutObject", "s3:AbortMultipartUpload"],
            },
        )
