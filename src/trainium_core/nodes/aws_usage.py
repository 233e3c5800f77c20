"""Asks whether the nodes of a deployed cluster are in use."""

from collections.abc import Collection
from datetime import datetime

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import UnavailableError
from trainium_runtime.usage import ClusterUsage
from trainium_runtime.usage_store import read_usage


class AwsUsage(AwsService):
    def usage(self, bucket: str, instances: Collection[str], *, now: datetime) -> ClusterUsage:
        """By what they wrote into the bucket of their records. Raises UnavailableError."""
        with read_errors(f"s3:GetObject on the bucket {bucket}"):
            try:
                return read_usage(self.client("s3"), bucket, instances, now=now)
            except ValueError as error:
                raise UnavailableError(str(error)) from error
