"""The bucket with source, checkpoints and models of training jobs."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.cdk_types import Key
from trainium_cdk.storage.disposable_bucket import DisposableBucket, allow_objects
from trainium_core.naming import CHECKPOINT_PREFIX, OUTPUT_PREFIX, SOURCE_PREFIX


class TrainingStore(Construct):
    """A bucket with folders for source, checkpoints and output, and their URLs. `bucket` is the CDK object."""

    bucket: s3.Bucket
    checkpoint_url: str
    output_url: str
    source_url: str

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        encryption_key: Key | None = None,
    ) -> None:
        """
        Args:
            removal_policy: DESTROY deletes the bucket with all trained models; RETAIN and
                RETAIN_ON_UPDATE_OR_DELETE keep it. Default: DESTROY.
            encryption_key: KMS key of the objects. Default: keys that S3 manages (SSE-S3).
        """
        super().__init__(scope, construct_id)
        store = DisposableBucket(
            self, "Store", purpose="training", removal_policy=removal_policy, encryption_key=encryption_key
        )
        self.bucket = store.bucket
        self.source_url = self._url(SOURCE_PREFIX)
        self.checkpoint_url = self._url(CHECKPOINT_PREFIX)
        self.output_url = self._url(OUTPUT_PREFIX)

    def _url(self, prefix: str) -> str:
        return f"s3://{self.bucket.bucket_name}/{prefix}"

    def grant_training(self, role: iam.IRole) -> None:
        """Allow a role to read source, to read, write and delete checkpoints, and to write models."""
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
