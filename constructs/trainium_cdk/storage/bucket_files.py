"""Small text files in a bucket, which may hold what only CloudFormation knows."""

from collections.abc import Mapping

from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify_wildcard
from trainium_cdk.storage.disposable_bucket import arn_of


class BucketFiles(Construct):
    """Files under one prefix of a bucket. They change with the template and go with the resource."""

    def __init__(
        self, scope: Construct, construct_id: str, *, bucket: s3.IBucket, prefix: str, files: Mapping[str, str]
    ) -> None:
        """files: text by name; may hold CDK tokens. All of them count against the size of the template."""
        super().__init__(scope, construct_id)
        function = HandlerFunction(self, "Writer", handler="bucket_files", timeout_minutes=2)
        objects = arn_of(bucket, f"{prefix}/*")
        function.allow(actions=["s3:PutObject", "s3:DeleteObject"], resources=[objects])
        justify_wildcard(function, objects, "the files of one prefix, whose names the template decides")
        content = function.custom_resource(
            self,
            "Files",
            resource_type="Custom::TrnBucketFiles",
            properties={"BucketName": bucket.bucket_name, "Prefix": prefix, "Files": dict(files)},
        )
        # At delete the function must still be allowed to, by its own policy and the bucket's.
        content.node.add_dependency(bucket)
        self.url = f"s3://{bucket.bucket_name}/{prefix}"
