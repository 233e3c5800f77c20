"""Parallel transfers of large files to and from S3, with boto3. Its slow transfer module is imported late."""

from importlib import import_module
from typing import Any, BinaryIO

from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.errors import UnavailableError


def download_object(s3: Any, bucket: str, key: str, path: str) -> None:
    """Download an object to a file.

    Raises:
        UnavailableError: S3 did not send the whole object.
    """
    transfers, exceptions = import_module("boto3.s3.inject"), import_module("boto3.exceptions")
    try:
        with read_errors(f"s3:GetObject on the bucket {bucket}"):
            transfers.download_file(s3, bucket, key, path)
    except exceptions.RetriesExceededError as error:
        raise UnavailableError(f"s3://{bucket}/{key} could not be read to its end: {error.last_exception}") from error


def upload_object(s3: Any, bucket: str, key: str, content: BinaryIO) -> None:
    """Upload an open file as an object.

    Raises:
        RequestRefusedError: S3 did not store the object.
    """
    with write_errors(f"s3:PutObject on the bucket {bucket}"):
        import_module("boto3.s3.inject").upload_fileobj(s3, content, bucket, key)
