"""Fixtures of the core's tests."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.core.fake_kubectl import Recorder, install

if TYPE_CHECKING:
    from trainium_core.aws.account import AwsAccount
    from trainium_core.engines.sagemaker.aws_jobs import SageMakerJobs
    from trainium_core.jobs.source_package import SourcePackage

REGION = "us-west-2"


@pytest.fixture
def made_up_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give boto3 made-up credentials, and hide the user's AWS configuration from it."""
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """The only kubectl in the PATH."""
    return install(tmp_path / "kubectl", monkeypatch)


@pytest.fixture(scope="module")
def account() -> "Iterator[AwsAccount]":
    """An account in moto, for all tests of a module."""
    from moto import mock_aws  # late: most tests need neither

    from trainium_core.aws.account import AwsAccount

    with mock_aws():
        yield AwsAccount(REGION)


@pytest.fixture
def ec2(account: "AwsAccount") -> Any:
    """The client of the account's EC2."""
    return account.client("ec2")


@pytest.fixture
def jobs() -> "Iterator[SageMakerJobs]":
    """The jobs of a stack of training jobs in moto, which `training_jobs.deploy` creates."""
    from moto import mock_aws

    from tests.core.aws_stubs import install_queues
    from tests.core.training_jobs import PLAN, STACK
    from trainium_core.engines.sagemaker.aws_jobs import SageMakerJobs
    from trainium_runtime.aws_service import Clients

    install_queues()
    with mock_aws():
        yield SageMakerJobs(PLAN, STACK, Clients())


@pytest.fixture
def package(tmp_path: Path) -> "SourcePackage":
    """A packed script."""
    from trainium_core.jobs.source_package import pack_source

    script = tmp_path / "train.py"
    script.write_text("print('hello')\n")
    return pack_source(script)
