"""Whether new volumes are encrypted with a key that Auto Scaling may not be allowed to use."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.stub import Stubber

from tests.core.fake_account import FakeAccount
from tests.core.findings import finding_of
from trainium_core.aws.account import AwsAccount

REGION = "us-west-2"
KEY = f"arn:aws:kms:{REGION}:123456789012:key/0ea3fef3-80a7-4778-9d8c-1c0c6EXAMPLE"


@pytest.mark.parametrize(
    ("settings", "roles"),
    [
        ({}, {"AutoScaling"}),
        ({"stacks": "pcs"}, {"PCS", "ImageBuilder"}),
        ({"stacks": "pcs", "pcs_ami": "ami-0123456789abcdef0"}, {"PCS"}),
        ({"stacks": "cluster,pcs"}, {"AutoScaling", "PCS", "ImageBuilder"}),
    ],
)
def test_customer_managed_key_is_reported_with_the_roles_that_need_it(
    settings: dict[str, str], roles: set[str]
) -> None:
    finding = finding_of("volumes", FakeAccount(volume_key=KEY), **settings)
    assert finding.outcome == "warn"
    assert KEY in finding.found
    for text in (finding.found, finding.fix):
        assert {*re.findall(r"AWSServiceRoleFor(\w+)", text)} == roles


@pytest.fixture
def account(made_up_credentials: None) -> AwsAccount:  # noqa: ARG001
    return AwsAccount(REGION)


@pytest.fixture
def ec2(account: AwsAccount) -> Iterator[Stubber]:
    with Stubber(account.client("ec2")) as stubber:
        yield stubber


@pytest.fixture
def kms(account: AwsAccount) -> Iterator[Stubber]:
    with Stubber(account.client("kms")) as stubber:
        yield stubber


@pytest.mark.parametrize(("manager", "expected"), [("AWS", None), ("CUSTOMER", KEY)])
def test_only_a_customer_managed_key_is_returned(
    account: AwsAccount, ec2: Any, kms: Any, manager: str, expected: str | None
) -> None:
    ec2.add_response("get_ebs_default_kms_key_id", {"KmsKeyId": KEY})
    kms.add_response("describe_key", {"KeyMetadata": {"KeyId": KEY, "KeyManager": manager}}, {"KeyId": KEY})
    assert account.storage.default_volume_key() == expected
