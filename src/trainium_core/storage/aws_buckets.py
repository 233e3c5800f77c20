"""Asks S3 about buckets."""

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService


class AwsBuckets(AwsService):
    def bucket_region(self, name: str) -> str | None:
        with read_errors(f"s3:ListBucket on the bucket {name}", absent=("404", "NoSuchBucket")):
            answer = self.client("s3").head_bucket(Bucket=name)
            headers = answer["ResponseMetadata"]["HTTPHeaders"]
            return answer.get("BucketRegion") or headers.get("x-amz-bucket-region", "")
        return None
