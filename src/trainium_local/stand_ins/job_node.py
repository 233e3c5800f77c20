"""python -m trainium_local.stand_ins.job_node LAUNCH_FILE: the part of one stand-in node in a job.

Runs `trn_job` as a node does, but calls the embedded AWS with boto3, because a stand-in has no metadata service.
"""

import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trainium_runtime.errors import ABSENT_OBJECT, CHANGED_OBJECT

_PROGRAMS = {
    "torchrun": "Install it with `pip install torch` in the environment of trn.",
    "neuron_parallel_compile": "Graphs are compiled on AWS only.",
}


class StandInStore:
    """Implements trn_job.store.Store with boto3."""

    def __init__(self, url: str, s3: Any = None) -> None:
        place = urlsplit(url)
        self._bucket, self._folder = place.netloc, place.path.strip("/")
        self._s3 = s3 or boto3.Session().client("s3", config=Config(s3={"addressing_style": "path"}))

    @property
    def imds(self) -> Any:
        """Without credentials: a stand-in has no metadata service, and compiles nothing."""
        from trn_node.imds import Imds

        return Imds()

    def at(self, url: str) -> "StandInStore":
        return StandInStore(url, self._s3)

    def keys(self) -> list[str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._key(""))
        return [entry["Key"].removeprefix(self._key("")) for page in pages for entry in page.get("Contents", [])]

    def read(self, key: str) -> dict[str, Any] | None:
        response = self._call("get_object", Key=self._key(key))
        return None if response is None else json.loads(response["Body"].read())

    def write(self, key: str, content: Mapping[str, Any]) -> None:
        self.write_text(key, json.dumps(content).encode())

    def create(self, key: str, content: Mapping[str, Any]) -> bool:
        body = json.dumps(content).encode()
        return self._call("put_object", Key=self._key(key), Body=body, IfNoneMatch="*") is not None

    def write_text(self, key: str, text: bytes) -> None:
        self._call("put_object", Key=self._key(key), Body=text)

    def upload(self, key: str, file: Path, digest: str = "") -> None:  # noqa: ARG002
        # The whole file, because it may grow in the meantime.
        self._call("put_object", Key=self._key(key), Body=file.read_bytes())

    def download(self, key: str, file: Path) -> bool:
        response = self._call("get_object", Key=self._key(key))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"" if response is None else response["Body"].read())
        return response is not None

    def _key(self, key: str) -> str:
        return f"{self._folder}/{key}" if self._folder else key

    def _call(self, operation: str, **arguments: Any) -> Any:
        """Call S3. Returns None if the object to read does not exist, or the object to create exists.

        Raises:
            OSError: S3 refused the request or did not answer, as in a node's store.
        """
        try:
            return getattr(self._s3, operation)(Bucket=self._bucket, **arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] in (*ABSENT_OBJECT, *CHANGED_OBJECT):
                return None
            raise OSError(str(error)) from error
        except BotoCoreError as error:
            raise OSError(str(error)) from error


def read_secret(arn: str) -> str:
    """Implements trn_node.secret_values.secret_value with boto3."""
    from trn_node.secret_values import SecretError

    try:
        if arn.split(":")[2] == "ssm":
            return boto3.client("ssm").get_parameter(Name=arn, WithDecryption=True)["Parameter"]["Value"]
        return boto3.client("secretsmanager").get_secret_value(SecretId=arn)["SecretString"]
    except (BotoCoreError, ClientError, LookupError) as error:
        raise SecretError(str(error)) from error


def end_with_the_server() -> None:
    """End this process when the embedded AWS, which holds this process's standard input open, ends."""
    # Without a buffer, whose lock would abort this process at its own end.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


def main(launch_file: str) -> int:
    sys.path.insert(0, str(files("trainium_userdata") / "node"))
    from trn_job import launch
    from trn_job.__main__ import run
    from trn_job.attempt import NodeAttempt

    threading.Thread(target=end_with_the_server, daemon=True).start()
    launched = launch.read(launch_file)
    store: Any = StandInStore(launched.url)
    attempt = NodeAttempt(launched, store, read_secret)
    for text in _missing(launched.spec.command, launched.spec.environment.get("PATH", "")):
        attempt.log.say(text)
    return run(attempt)


def _missing(command: str, path: str) -> Iterator[str]:
    """Yield sentences on what a stand-in does not support, and on what this machine lacks for the command."""
    yield (
        "stand-in nodes: the job runs as processes on this machine, on its CPUs and with its files. The job receives "
        "the notices of `trn` (SIGUSR1), but not those of AWS."
    )
    program = command.partition(" ")[0]
    if program in _PROGRAMS and not shutil.which(program, path=path):
        yield f"{program} is not installed on this machine; Neuron images contain it. {_PROGRAMS[program]}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
