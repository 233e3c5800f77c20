"""Asking AWS for more: what is sent, and what becomes of each refusal. Stubber holds both against AWS's model."""

from datetime import UTC, datetime

import pytest
from botocore.stub import Stubber

from tests.core.fake_quotas import ON_DEMAND
from trainium_core.quotas.aws_requests import AlreadyRequestedError, AwsQuotaRequests
from trainium_runtime.errors import RequestRefusedError
from trainium_runtime.quota import QuotaRequest

pytestmark = pytest.mark.usefixtures("credentials_of_nobody")

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def requests() -> AwsQuotaRequests:
    return AwsQuotaRequests("us-west-2")


@pytest.fixture
def stub(requests: AwsQuotaRequests) -> Stubber:
    stub = Stubber(requests.client("service-quotas"))
    stub.activate()
    return stub


def test_exactly_the_value_is_requested(requests: AwsQuotaRequests, stub: Stubber) -> None:
    shown = {"Id": "r-1", "DesiredValue": 384.0, "Status": "PENDING", "Created": NOON}
    parameters = {"ServiceCode": "ec2", "QuotaCode": ON_DEMAND, "DesiredValue": 384}
    stub.add_response("request_service_quota_increase", {"RequestedQuota": shown}, parameters)
    made = requests.request_increase("ec2", ON_DEMAND, desired=384)
    assert made == QuotaRequest(request_id="r-1", desired=384, status="PENDING", created=NOON)


def test_a_request_that_is_open_is_recognised(requests: AwsQuotaRequests, stub: Stubber) -> None:
    stub.add_client_error("request_service_quota_increase", "ResourceAlreadyExistsException")
    with pytest.raises(AlreadyRequestedError):
        requests.request_increase("ec2", ON_DEMAND, desired=384)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("AccessDeniedException", "servicequotas:RequestServiceQuotaIncrease is missing"),
        ("DependencyAccessDeniedException", "iam:CreateServiceLinkedRole"),
        ("QuotaExceededException", "AWS answered QuotaExceededException: too many"),
    ],
)
def test_a_refusal_says_why(requests: AwsQuotaRequests, stub: Stubber, code: str, says: str) -> None:
    stub.add_client_error("request_service_quota_increase", code, "too many")
    with pytest.raises(RequestRefusedError, match=says):
        requests.request_increase("ec2", ON_DEMAND, desired=384)
