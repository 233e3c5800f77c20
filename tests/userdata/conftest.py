"""Fixtures of the tests of user data and node programs."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.forked import start_server
from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.booting_node import BootingNode
from tests.userdata.cache_node import CacheNode, Keys
from tests.userdata.job_nodes import JobNodes
from tests.userdata.plans import LOCATIONS
from trainium_core.plan import Plan
from trainium_local import lifecycle
from trainium_local.server import Settings
from trn_cache.entries import Entries
from trn_node.imds import Credentials

NodeMaker = Callable[[Plan], BootingNode]


@pytest.fixture
def aws() -> Iterator[AwsStandIn]:
    with AwsStandIn(region=LOCATIONS.region) as services:
        yield services


@pytest.fixture
def node_for(tmp_path: Path, aws: AwsStandIn) -> NodeMaker:
    return lambda plan: BootingNode(tmp_path, plan, aws)


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The embedded AWS."""
    folder = tmp_path_factory.mktemp("aws")
    yield start_server(folder, Settings())
    lifecycle.stop(folder)


@pytest.fixture
def keys(endpoint: Any) -> Credentials:
    """Credentials for the embedded AWS, as a node has them."""
    found = endpoint.credentials
    return Credentials(found.access_key_id, found.secret_access_key, "token")


@pytest.fixture
def bucket(endpoint: Any) -> Any:
    """The bucket of compile caches in the embedded AWS, as a boto3 resource."""
    keys = endpoint.credentials
    s3 = boto3.resource(
        "s3",
        endpoint_url=endpoint.endpoint,
        region_name=endpoint.region,
        aws_access_key_id=keys.access_key_id,
        aws_secret_access_key=keys.secret_access_key,
    ).Bucket("compiled")
    s3.create(CreateBucketConfiguration={"LocationConstraint": endpoint.region})
    yield s3
    s3.objects.all().delete()
    s3.delete()


@pytest.fixture
def s3(endpoint: Any, keys: Credentials, bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Entries:
    """The entries in the embedded AWS. Sets the variables that this process and its child processes need for S3."""
    del bucket
    (tmp_path / "etc/trn").mkdir(parents=True)
    (tmp_path / "etc/trn/places.env").write_text(f"TRN_REGION={endpoint.region}\n")
    monkeypatch.setenv("ROOT", str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint.endpoint)
    return Entries(Keys(keys), retries=0)


@pytest.fixture
def new_node(tmp_path: Path, s3: Entries) -> Callable[..., CacheNode]:
    """Makes a node with a separate disk."""
    numbers = count()
    return lambda *place, **more: CacheNode(tmp_path / f"node{next(numbers)}", s3, *place, **more)


@pytest.fixture
def nodes(tmp_path: Path, aws: AwsStandIn) -> Iterator[JobNodes]:
    made = JobNodes(tmp_path, aws)
    yield made
    made.close()
