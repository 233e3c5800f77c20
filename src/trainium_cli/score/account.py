"""The accounts that are measured: a private embedded AWS and a plain moto, each with its processes for this alone."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Any

import boto3
from botocore.config import Config

from trainium_cli.score.parameters import Existing
from trainium_local import DEFAULT_REGION, lifecycle
from trainium_local.environment import HOST, Connection, safe_environment, tool_folders
from trainium_local.server import Settings
from trainium_local.signatures import Credentials

START_SECONDS = 60
READ_TIMEOUT_SECONDS = 120
INTERNAL_ERROR = re.compile(r"\b500 (-|\d+)$", re.MULTILINE)
KEY_PAIR = "score"
ANY_CREDENTIALS = Credentials(access_key_id="PLAINMOTO", secret_access_key="takes-any")
TEMPLATE_BUCKET = "score-templates"
IMAGE_NAME = "amzn2-ami-hvm-*x86_64*"


_making_clients = Lock()


@cache
def _session() -> Any:
    """One for all accounts, so that the descriptions of the services are read once."""
    return boto3.Session()


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server. created: the types of resources behind which there is a service, None if it does not say."""

    connection: Connection
    log: Path
    created: frozenset[str] | None
    stop: Callable[[], object]


def embedded_aws(folder: Path) -> Server:
    """Start an embedded AWS whose state is in `folder`. Raises LocalError if it does not start."""
    started = lifecycle.start(folder, Settings())
    return Server(
        connection=started.connection,
        log=Path(started.health.log),
        created=frozenset(started.health.created),
        stop=lambda: lifecycle.stop(folder),
    )


def plain_moto(folder: Path) -> Server:
    """Start moto's own server, without anything of ours. Raises LocalError if it does not start."""
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    connection = Connection(endpoint=f"http://{HOST}:{port}", region=DEFAULT_REGION, credentials=ANY_CREDENTIALS)
    log, environment = folder / "moto.log", safe_environment(os.environ, connection)
    command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
    with log.open("w") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output, env=environment)

    def stop() -> None:
        server.terminate()
        server.wait()

    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection((HOST, port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return Server(connection=connection, log=log, created=None, stop=stop)
    stop()
    raise lifecycle.LocalError(f"plain moto did not start.\n{log.read_text(errors='replace')}")


class Account:
    """A new account on a server of its own, with a key pair and a bucket for templates. Stop it at the end.

    bootstrapped: the regions that are ready for the CDK. spoiled: whether it is not as it was when it was new.
    """

    def __init__(self, start: Callable[[Path], Server]) -> None:
        self._start = start
        self.folder = Path(mkdtemp(prefix="trn-score-"))
        self.renew()

    def renew(self) -> None:
        """Put another new account in the place of this one."""
        if "server" in self.__dict__:
            self.server.stop()
        self.server = self._start(self.folder)
        self.spoiled = False
        self.bootstrapped: set[str] = set()
        self._clients: dict[tuple[str, str], Any] = {}
        self.__dict__.pop("existing", None)
        self.client("ec2").create_key_pair(KeyName=KEY_PAIR)
        location = {"LocationConstraint": DEFAULT_REGION}
        self.client("s3").create_bucket(Bucket=TEMPLATE_BUCKET, CreateBucketConfiguration=location)

    def stop(self) -> None:
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def client(self, service: str, region: str = DEFAULT_REGION) -> Any:
        """A boto3 client that asks once, so that no failure of the server is passed over."""
        if (service, region) not in self._clients:
            session, connection = _session(), self.server.connection
            with _making_clients:
                self._clients[service, region] = session.client(
                    service,
                    endpoint_url=connection.endpoint,
                    region_name=region,
                    aws_access_key_id=connection.credentials.access_key_id,
                    aws_secret_access_key=connection.credentials.secret_access_key,
                    config=Config(retries={"total_max_attempts": 1}, read_timeout=READ_TIMEOUT_SECONDS),
                )
        return self._clients[service, region]

    def environment(self) -> dict[str, str]:
        """The variables for a program that is to reach this account and no other."""
        return safe_environment(os.environ, self.server.connection, tools=tool_folders(Path.cwd()))

    @cached_property
    def existing(self) -> Existing:
        ec2 = self.client("ec2")
        vpc = ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"][0]["VpcId"]
        inside = [{"Name": "vpc-id", "Values": [vpc]}]
        subnets = ec2.describe_subnets(Filters=inside)["Subnets"]
        groups = ec2.describe_security_groups(Filters=inside)["SecurityGroups"]
        images = ec2.describe_images(Filters=[{"Name": "name", "Values": [IMAGE_NAME]}])["Images"]
        return Existing(
            region=DEFAULT_REGION,
            vpc=vpc,
            subnets=tuple(one["SubnetId"] for one in subnets),
            zones=tuple(one["AvailabilityZone"] for one in subnets),
            security_group=groups[0]["GroupId"],
            key_pair=KEY_PAIR,
            image=images[0]["ImageId"],
        )

    def internal_errors(self) -> int:
        """How many requests the server has answered with 500 since it started."""
        return len(INTERNAL_ERROR.findall(self.server.log.read_text(errors="replace")))
