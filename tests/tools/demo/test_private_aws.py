"""The demo refuses to continue when a client would reach anything but its own embedded AWS."""

import os
from pathlib import Path

import pytest

from tools.demo.private_aws import PrivateAws, private_aws
from trainium_local import lifecycle
from trainium_local.environment import Connection, NotTheEmbeddedAwsError
from trainium_local.lifecycle import Started
from trainium_local.server import Health
from trainium_local.signatures import SigningCredentials

ENDPOINT = "http://127.0.0.1:4599"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PrivateAws:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", ENDPOINT)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    return PrivateAws(endpoint=ENDPOINT, region="us-west-2", folder=tmp_path)


@pytest.mark.parametrize("service", ["ec2", "s3", "iam", "cloudformation"])
def test_client_reaches_the_embedded_aws(aws: PrivateAws, service: str) -> None:
    assert aws.client(service).meta.endpoint_url == ENDPOINT


def test_client_of_real_aws_is_refused(aws: PrivateAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    with pytest.raises(NotTheEmbeddedAwsError, match=r"ec2\.us-west-2\.amazonaws\.com"):
        aws.client("ec2")


def test_client_of_one_service_with_another_endpoint_is_refused(
    aws: PrivateAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://s3.example.org")
    with pytest.raises(NotTheEmbeddedAwsError, match=r"s3\.example\.org"):
        aws.client("s3")


def let_server_start(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    """Let `lifecycle.start` report a server at an endpoint, without starting one."""
    health = Health(
        pid=1,
        account="999999999999",
        endpoint=endpoint,
        region="us-west-2",
        started="",
        quotas={},
        fail_nodes=0,
        stand_in_nodes=True,
        iam="ignored",
        log="",
        adapters=(),
    )
    keys = SigningCredentials(access_key_id="nobody", secret_access_key="nothing")
    connection = Connection(endpoint=endpoint, region="us-west-2", credentials=keys)
    monkeypatch.setattr(lifecycle, "start", lambda *_: Started(health=health, connection=connection, already=False))


@pytest.mark.parametrize("endpoint", ["https://sts.amazonaws.com", "http://10.0.0.1:4599"])
def test_server_outside_loopback_is_refused(endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    let_server_start(monkeypatch, endpoint)
    own = dict(os.environ)
    with pytest.raises(NotTheEmbeddedAwsError), private_aws(tmp_path, "us-west-2"):
        pytest.fail("nothing may be done with it")
    assert dict(os.environ) == own


def test_environment_is_restored_at_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    let_server_start(monkeypatch, ENDPOINT)
    own = dict(os.environ)
    with private_aws(tmp_path, "us-west-2") as aws:
        assert os.environ["AWS_ENDPOINT_URL"] == aws.endpoint == ENDPOINT
    assert dict(os.environ) == own
