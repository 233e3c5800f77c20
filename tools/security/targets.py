"""The targets of the attacks: the embedded AWS, and plain moto, where attacks over the network succeed."""

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer

from trainium_local import lifecycle
from trainium_local.environment import Connection
from trainium_local.server import Settings
from trainium_local.signatures import SigningCredentials

REGION = "us-west-2"
IMAGE = b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'


@dataclass(frozen=True, kw_only=True)
class Target:
    """A server as its owner sees it.

    Attributes:
        folder: The state folder of the server. None for plain moto.
        pid: The process ID of the server. None for plain moto.
    """

    connection: Connection
    folder: Path | None = None
    pid: int | None = None

    @property
    def port(self) -> int:
        return int(self.connection.endpoint.rpartition(":")[2])

    def client(self, service: str) -> Any:
        keys = self.connection.credentials
        return boto3.client(
            service,
            endpoint_url=self.connection.endpoint,
            region_name=REGION,
            aws_access_key_id=keys.access_key_id,
            aws_secret_access_key=keys.secret_access_key,
        )

    def prepare(self) -> None:
        """Create the target of the attacks: a public bucket with an object."""
        s3 = self.client("s3")
        s3.create_bucket(
            Bucket="victim", ACL="public-read-write", CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        s3.put_object(Bucket="victim", Key="image.svg", Body=IMAGE, ACL="public-read", ContentType="image/svg+xml")

    def harm(self) -> set[str]:
        """The attacks that left a trace here."""
        stacks = self.client("cloudformation").list_stacks()["StackSummaries"]
        harm = {"create"} if any(stack["StackName"] == "attack" for stack in stacks) else set[str]()
        try:
            objects = self.client("s3").list_objects_v2(Bucket="victim").get("Contents", [])
        except ClientError:
            return harm | {"reset"}
        return harm | ({"submit"} if any(item["Key"] == "submitted" for item in objects) else set[str]())


@contextmanager
def embedded_aws() -> Generator[Target]:
    """The embedded AWS. Only the mode of its state folder protects it: the parent folder is open to all users."""
    parent = Path(tempfile.mkdtemp(prefix="trn-security-"))
    parent.chmod(0o755)
    try:
        started = lifecycle.start(parent / "state", Settings())
        yield Target(connection=started.connection, folder=parent / "state", pid=started.health.pid)
    finally:
        lifecycle.stop(parent / "state")
        shutil.rmtree(parent)


@contextmanager
def plain_moto() -> Generator[Target]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        keys = SigningCredentials(access_key_id="AKIAIOSFODNN7EXAMPLE", secret_access_key="any")
        yield Target(connection=Connection(endpoint=f"http://{host}:{port}", region=REGION, credentials=keys))
    finally:
        server.stop()
