"""The purchase of a Capacity Block: one request without retries; an unclear result is never reported as a failure."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError, ReadTimeoutError
from botocore.stub import Stubber

from trainium_core.capacity.aws_purchase import ONCE, AwsCapacityPurchase, PurchasedBlock, SaleUnknownError
from trainium_runtime.errors import RequestRefusedError

pytestmark = pytest.mark.usefixtures("made_up_credentials")

OFFERING = "cb-0123456789abcdef0"
REQUEST = {"CapacityBlockOfferingId": OFFERING, "InstancePlatform": "Linux/UNIX"}


@pytest.fixture
def client() -> Any:
    return boto3.client("ec2", region_name="us-west-2", config=ONCE)


@pytest.fixture
def ec2(client: Any) -> Iterator[Stubber]:
    with Stubber(client) as stub:
        yield stub
        stub.assert_no_pending_responses()


def buy(client: Any) -> PurchasedBlock:
    return AwsCapacityPurchase("us-west-2", client=client).buy(OFFERING)


def test_purchase_returns_the_reservation(client: Any, ec2: Stubber) -> None:
    bought = {"CapacityReservationId": "cr-0123456789abcdef0", "State": "payment-pending"}
    ec2.add_response("purchase_capacity_block", {"CapacityReservation": bought}, REQUEST)
    assert buy(client) == PurchasedBlock(reservation_id="cr-0123456789abcdef0", state="payment-pending")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("UnauthorizedOperation", "the permission ec2:PurchaseCapacityBlock is missing"),
        ("InvalidParameterValue", "AWS answered InvalidParameterValue: it is sold"),
    ],
)
def test_refusal_is_reported(client: Any, ec2: Stubber, code: str, message: str) -> None:
    ec2.add_client_error("purchase_capacity_block", code, "it is sold")
    with pytest.raises(RequestRefusedError, match=message):
        buy(client)


def test_server_error_leaves_purchase_unknown(client: Any, ec2: Stubber) -> None:
    ec2.add_client_error("purchase_capacity_block", "InternalError", "oops", http_status_code=500)
    with pytest.raises(SaleUnknownError):
        buy(client)


@pytest.mark.parametrize("error", [NoCredentialsError(), EndpointConnectionError(endpoint_url="https://ec2.invalid")])
def test_request_that_was_not_sent_bought_nothing(
    client: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(client, "_make_api_call", fail)
    with pytest.raises(RequestRefusedError):
        buy(client)


def test_missing_response_leaves_purchase_unknown(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ReadTimeoutError(endpoint_url="https://ec2.invalid")

    monkeypatch.setattr(client, "_make_api_call", fail)
    with pytest.raises(SaleUnknownError):
        buy(client)


class _Failing(BaseHTTPRequestHandler):
    requests = 0

    def do_POST(self) -> None:
        type(self).requests += 1
        self.send_response(503)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_failed_purchase_is_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    server = HTTPServer(("127.0.0.1", 0), _Failing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    try:
        with pytest.raises(SaleUnknownError):
            AwsCapacityPurchase("us-west-2").buy(OFFERING)
    finally:
        server.shutdown()
        server.server_close()
    assert _Failing.requests == 1
