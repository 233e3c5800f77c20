"""Small text files in a bucket, which may contain CDK tokens."""

from collections.abc import Mapping

from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify_wildcard
from trainium_cdk.storage.disposable_bucket import arn_of


class BucketFiles(Construct):
    """Files under one prefix of a bucket, updated with the template and deleted with the resource."""

    def __init__(
        self, scope: Construct, construct_id: str, *, bucket: s3.IBucket, prefix: str, files: Mapping[str, str]
    ) -> None:
        """files: text by name; may contain CDK tokens. They count toward the size of the template."""
        super().__init__(scope, construct_id)
        function = HandlerFunction(self, "Writer", handler="bucket_files", timeout_minutes=2)
        objects = arn_of(bucket, f"{prefix}/*")
        function.allow(actions=["s3:PutObject", "s3:DeleteObject"], resources=[objects])
        justify_wildcard(function, objects, "the files of one prefix, whose names depend on the template")
        content = function.custom_resource(
            self,
            "Files",
            resource_type="Custom::TrnBucketFiles",
            properties={"BucketName": bucket.bucket_name, "Prefix": prefix, "Files": dict(files)},
        )
        # At deletion the function still needs its policy and that of the bucket.
        content.node.add_dependency(bucket)
        self.url = f"s3://{bucket.bucket_name}/{prefix}"
