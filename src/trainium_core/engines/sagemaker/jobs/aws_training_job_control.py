"""Starts and stops training jobs. Of this package, only `trn sagemaker` and run_training_job use it: it costs money."""

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from trainium_core.engines.sagemaker.jobs.aws_training_jobs import AwsTrainingJobs
from trainium_core.engines.sagemaker.jobs.training_jobs import JobUnknownError
from trainium_runtime.aws_errors import DENIED, error_code, write_errors
from trainium_runtime.errors import RequestRefusedError

_ABSENT = ("404", "NoSuchKey", "NotFound")


class AwsTrainingJobControl(AwsTrainingJobs):
    """Implements jobs.training_jobs.TrainingJobControl for the credentials that boto3 finds."""

    def upload(self, folder_url: str, files: Mapping[str, bytes]) -> int:
        url_parts = urlsplit(folder_url)
        keys = {f"{url_parts.path.strip('/')}/{name}".lstrip("/"): content for name, content in files.items()}
        missing = {
            key: content for key, content in keys.items() if not self._is_there(url_parts.netloc, key, len(content))
        }
        for key, content in missing.items():
            with write_errors("s3:PutObject"):
                self.client("s3").put_object(Bucket=url_parts.netloc, Key=key, Body=content)
        return len(missing)

    def start(self, request: Mapping[str, object]) -> None:
        # A name is used once: a request that boto3 sends again, for want of an answer, starts no second job.
        try:
            with write_errors("sagemaker:CreateTrainingJob"):
                self.client("sagemaker").create_training_job(**request)
        except RequestRefusedError as error:
            if _may_have_been_taken(error.__cause__):
                raise JobUnknownError(str(error)) from error
            raise

    def stop(self, name: str) -> None:
        with write_errors("sagemaker:StopTrainingJob"):
            self.client("sagemaker").stop_training_job(TrainingJobName=name)

    def _is_there(self, bucket: str, key: str, size: int) -> bool:
        # Without s3:ListBucket S3 answers 403 for what does not exist: uploading it has the better error.
        with write_errors("s3:GetObject", absent=(*_ABSENT, *DENIED)):
            return self.client("s3").head_object(Bucket=bucket, Key=key)["ContentLength"] == size
        return False


def _may_have_been_taken(cause: BaseException | None) -> bool:
    """Whether the order may have reached AWS all the same; a name that is in use may be that of the first attempt."""
    if isinstance(cause, ClientError):
        status = cast(Any, cause).response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or error_code(cause) == "ResourceInUse"
    return isinstance(cause, ReadTimeoutError | ConnectionClosedError | ResponseParserError)
