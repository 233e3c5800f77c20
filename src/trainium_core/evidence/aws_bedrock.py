"""A checkpoint in S3."""

from collections.abc import Mapping

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService, Clients


class CheckpointInS3(AwsService):
    """Implements trainium_core.evidence.bedrock.Checkpoint. prefix: ends with a slash.

    Raises UnavailableError.
    """

    def __init__(self, region: str, bucket: str, prefix: str, clients: Clients) -> None:
        super().__init__(region, clients=clients)
        self._bucket, self._prefix = bucket, prefix
        self.sizes = self._listed()

    def _listed(self) -> Mapping[str, int]:
        with read_errors("s3:ListBucket"):
            pages = self.client("s3").get_paginator("list_objects_v2")
            found = pages.paginate(Bucket=self._bucket, Prefix=self._prefix, Delimiter="/")
            return {
                entry["Key"].removeprefix(self._prefix): entry["Size"]
                for page in found
                for entry in page.get("Contents", [])
                if entry["Key"] != self._prefix
            }

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """One request for the wanted bytes."""
        part = {} if length is None else {"Range": f"bytes={start}-{start + length - 1}"}
        with read_errors("s3:GetObject"):
            return self.client("s3").get_object(Bucket=self._bucket, Key=f"{self._prefix}{name}", **part)["Body"].read()
