"""A checkpoint in S3, and its import into Amazon Bedrock."""

from collections.abc import Mapping
from dataclasses import dataclass

from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.aws_service import AwsService, Clients
from trainium_runtime.naming import CLUSTER_TAG


class CheckpointInS3(AwsService):
    """A checkpoint below a prefix that ends with a slash. Implements trainium_core.evidence.bedrock.Checkpoint.

    Raises:
        UnavailableError: The files cannot be listed or read.
    """

    def __init__(self, region: str, bucket: str, prefix: str, clients: Clients) -> None:
        super().__init__(region, clients=clients)
        self._bucket, self._prefix = bucket, prefix
        self.sizes = self._listed()

    def _listed(self) -> Mapping[str, int]:
        with read_errors("s3:ListBucket"):
            pages = self.client("s3").get_paginator("list_objects_v2")
            listing = pages.paginate(Bucket=self._bucket, Prefix=self._prefix, Delimiter="/")
            return {
                entry["Key"].removeprefix(self._prefix): entry["Size"]
                for page in listing
                for entry in page.get("Contents", [])
                if entry["Key"] != self._prefix
            }

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Read the bytes with one request."""
        part = {} if length is None else {"Range": f"bytes={start}-{start + length - 1}"}
        with read_errors("s3:GetObject"):
            return self.client("s3").get_object(Bucket=self._bucket, Key=f"{self._prefix}{name}", **part)["Body"].read()


FAILED = "Failed"


@dataclass(frozen=True, kw_only=True)
class ImportJob:
    """A model import job.

    Attributes:
        status: InProgress, Completed or Failed; "unknown" if it could not be read.
        failure: Bedrock's message, if the job failed.
    """

    arn: str
    status: str
    failure: str = ""


class AwsModelImport(AwsService):
    """Starts and reads model import jobs."""

    def start(self, *, name: str, job_name: str, role: str, location: str, cluster: str) -> str:
        """Start a job that imports a checkpoint as the model `name`.

        Only the model gets the cluster's tag, because the job itself is not billed.

        Returns:
            The ARN of the job.

        Raises:
            RequestRefusedError: Bedrock refused the job, or the request failed: the job may exist nevertheless.
        """
        with write_errors("bedrock:CreateModelImportJob"):
            answer = self.client("bedrock").create_model_import_job(
                jobName=job_name,
                importedModelName=name,
                roleArn=role,
                modelDataSource={"s3DataSource": {"s3Uri": location}},
                importedModelTags=[{"key": CLUSTER_TAG, "value": cluster}],
            )
            return answer["jobArn"]

    def job(self, arn: str) -> ImportJob:
        """The state of a job.

        Raises:
            UnavailableError: The job cannot be read.
        """
        with read_errors("bedrock:GetModelImportJob"):
            stored = self.client("bedrock").get_model_import_job(jobIdentifier=arn)
            return ImportJob(arn=arn, status=stored["status"], failure=stored.get("failureMessage", ""))
