"""Access control of the server: each check alone with a request that is valid otherwise, and clients that stall."""

import json
import select
import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlsplit

import pytest
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as Keys
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from tests.local.conftest import EmbeddedAws
from trainium_local import CLOCK_PATH, http_server
from trainium_local.environment import Connection
from trainium_local.server import HEALTH_PATH
from trainium_local.signatures import SignedRequest, SigningCredentials, request_signature, sign

IDENTITY = b"Action=GetCallerIdentity&Version=2011-06-15"
FORM = "application/x-www-form-urlencoded"
MOTO_API = (
    "/moto-api/reset",
    "/moto-api/data.json",
    "/moto-api/recorder/start-recording",
    "/moto-api/seed",
    "/moto-api/",
)


def send(aws: EmbeddedAws, raw: bytes, *, seconds: float = 30) -> tuple[int, dict[str, str], str]:
    """Send bytes. Returns status, headers in lower case, and body of the answer."""
    place = urlsplit(aws.endpoint)
    with socket.create_connection((place.hostname, place.port), timeout=seconds) as client:
        client.sendall(raw)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split()[1]), headers, body.decode()


def signed(connection: Connection, method: str = "POST", path: str = "/", body: bytes = IDENTITY, **more: str) -> bytes:
    """A request as raw bytes, with a valid signature and further headers (underscores for dashes)."""
    further = {name.replace("_", "-"): value for name, value in more.items()}
    headers = {"host": urlsplit(connection.endpoint).netloc, "content-type": FORM} | further
    request = SignedRequest(method=method, target=path, headers=headers)
    return raw(method, path, sign(connection.credentials, request, body, region="us-west-2", service="sts"), body)


def raw(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body


def test_signed_request_is_answered(embedded_aws: EmbeddedAws) -> None:
    status, _, body = send(embedded_aws, signed(embedded_aws.connection))
    assert (status, "<Account>123456789012</Account>" in body) == (200, True)


@pytest.mark.parametrize(
    "host",
    [
        "rebinding.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost",
        "127.0.0.1.example.org:{port}",
        "bucket.localhost:{port}",
        "sts.us-west-2.amazonaws.com",
        "[::1]:{port}",
        "",
    ],
)
def test_other_host_is_refused(embedded_aws: EmbeddedAws, host: str) -> None:
    port = str(urlsplit(embedded_aws.endpoint).port)
    status, _, _ = send(embedded_aws, signed(embedded_aws.connection, host=host.format(port=port)))
    assert status == 421


def test_host_localhost_is_accepted(embedded_aws: EmbeddedAws) -> None:
    host = f"localhost:{urlsplit(embedded_aws.endpoint).port}"
    assert send(embedded_aws, signed(embedded_aws.connection, host=host))[0] == 200


@pytest.mark.parametrize("lines", ["", "host: {host}\r\nhost: {host}\r\n"])
def test_missing_and_repeated_host_are_refused(embedded_aws: EmbeddedAws, lines: str) -> None:
    host = urlsplit(embedded_aws.endpoint).netloc
    assert send(embedded_aws, f"GET / HTTP/1.1\r\n{lines.format(host=host)}\r\n".encode())[0] == 421


def test_host_in_request_line_is_refused(embedded_aws: EmbeddedAws) -> None:
    assert send(embedded_aws, signed(embedded_aws.connection, path=f"{embedded_aws.endpoint}/"))[0] == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "file://"])
def test_foreign_origin_is_refused(embedded_aws: EmbeddedAws, origin: str) -> None:
    assert send(embedded_aws, signed(embedded_aws.connection, origin=origin))[0] == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_cross_site_request_is_refused(embedded_aws: EmbeddedAws, site: str) -> None:
    assert send(embedded_aws, signed(embedded_aws.connection, sec_fetch_site=site))[0] == 403


def test_signed_preflight_is_refused(embedded_aws: EmbeddedAws) -> None:
    assert send(embedded_aws, signed(embedded_aws.connection, method="OPTIONS"))[0] == 403


def test_response_allows_no_other_origin(embedded_aws: EmbeddedAws) -> None:
    own = f"http://{urlsplit(embedded_aws.endpoint).netloc}"
    requests = [signed(embedded_aws.connection, origin=origin) for origin in (own, "http://evil.example")]
    requests.append(raw("OPTIONS", "/", {"host": urlsplit(embedded_aws.endpoint).netloc, "origin": own}))
    names = {name for request in requests for name in send(embedded_aws, request)[1]}
    assert "content-type" in names
    assert not [name for name in names if name.startswith("access-control-")]


@pytest.mark.parametrize("path", [*MOTO_API, "//moto-api/reset", "/%6doto-api/reset"])
def test_moto_api_is_refused_to_owner(embedded_aws: EmbeddedAws, path: str) -> None:
    status, _, body = send(embedded_aws, signed(embedded_aws.connection, path=path))
    assert (status, "moto's own API is closed" in body) == (403, True)


@pytest.mark.parametrize("path", ["/", "/bucket/key", HEALTH_PATH, CLOCK_PATH, "/_trn_local/cloudformation-response/0"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "HEAD"])
def test_unsigned_request_is_refused(embedded_aws: EmbeddedAws, method: str, path: str) -> None:
    headers = {"host": urlsplit(embedded_aws.endpoint).netloc, "content-type": FORM}
    status, _, body = send(embedded_aws, raw(method, path, headers, IDENTITY))
    assert status == 403
    assert f"{datetime.now(UTC):%Y}" not in body
    assert "us-west-2" not in body


STRANGERS = {
    "an unknown access key": {"access_key_id": "AKIAIOSFODNN7EXAMPLE"},
    "a constant access key": {"access_key_id": "EMBEDDEDAWSNOTAREALKEY"},
    "a wrong secret": {"secret_access_key": "guessed"},
}


@pytest.mark.parametrize("service", ["sts", "s3", "ec2", "ssm"])
@pytest.mark.parametrize("wrong", STRANGERS.values(), ids=STRANGERS)
def test_sdk_with_other_credentials_gets_error_of_service(
    embedded_aws: EmbeddedAws, service: str, wrong: dict[str, str]
) -> None:
    keys = replace(embedded_aws.connection.credentials, **wrong)
    stranger = EmbeddedAws(connection=replace(embedded_aws.connection, credentials=keys), log=embedded_aws.log).client(
        service
    )
    calls = {"sts": "get_caller_identity", "s3": "list_buckets", "ec2": "describe_vpcs", "ssm": "describe_parameters"}
    with pytest.raises(ClientError) as refused:
        getattr(stranger, calls[service])()
    key = "InvalidAccessKeyId" if service == "s3" else "InvalidClientTokenId"
    expected = "SignatureDoesNotMatch" if "secret_access_key" in wrong else key
    assert refused.value.response["Error"]["Code"] == expected


@pytest.mark.parametrize("service", ["s3", "sts"])
def test_presigned_url_is_refused(embedded_aws: EmbeddedAws, service: str) -> None:
    operation = {"s3": "list_buckets", "sts": "get_caller_identity"}[service]
    url = urlsplit(embedded_aws.client(service).generate_presigned_url(operation))
    assert send(embedded_aws, raw("GET", f"/?{url.query}", {"host": url.netloc}))[0] == 403


def test_changed_body_is_refused(embedded_aws: EmbeddedAws) -> None:
    request = signed(embedded_aws.connection)
    assert send(embedded_aws, request.replace(b"GetCallerIdentity", b"GetSessionToken  "))[0] == 403


def test_expired_signature_is_refused(embedded_aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    yesterday = datetime.now(UTC) - timedelta(days=1)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: yesterday)
    assert send(embedded_aws, signed(embedded_aws.connection))[0] == 403


@pytest.fixture(scope="module")
def assumed(embedded_aws: EmbeddedAws) -> EmbeddedAws:
    """The same server with the credentials of a role."""
    arn = "arn:aws:iam::123456789012:role/somebody"
    response = embedded_aws.client("sts").assume_role(RoleArn=arn, RoleSessionName="a-test")["Credentials"]
    keys = SigningCredentials(
        access_key_id=response["AccessKeyId"],
        secret_access_key=response["SecretAccessKey"],
        session_token=response["SessionToken"],
    )
    return EmbeddedAws(connection=replace(embedded_aws.connection, credentials=keys), log=embedded_aws.log)


def test_credentials_of_role_are_accepted(assumed: EmbeddedAws) -> None:
    assert assumed.client("sts").get_caller_identity()["Arn"].endswith("assumed-role/somebody/a-test")


@pytest.mark.parametrize("path", [HEALTH_PATH, CLOCK_PATH])
def test_server_paths_are_refused_to_a_role(assumed: EmbeddedAws, path: str) -> None:
    assert send(assumed, signed(assumed.connection, "GET", path, b""))[0] == 403


def test_access_key_of_user_is_accepted_until_deleted(embedded_aws: EmbeddedAws) -> None:
    iam = embedded_aws.client("iam")
    iam.create_user(UserName="with-a-key")
    key = iam.create_access_key(UserName="with-a-key")["AccessKey"]
    keys = SigningCredentials(access_key_id=key["AccessKeyId"], secret_access_key=key["SecretAccessKey"])
    user = EmbeddedAws(connection=replace(embedded_aws.connection, credentials=keys), log=embedded_aws.log)
    assert user.client("sts").get_caller_identity()["Arn"].endswith("user/with-a-key")
    iam.delete_access_key(UserName="with-a-key", AccessKeyId=keys.access_key_id)
    assert send(user, signed(user.connection))[0] == 403


def test_each_start_has_new_credentials(embedded_aws: EmbeddedAws, chosen_aws: EmbeddedAws) -> None:
    other = replace(embedded_aws.connection, endpoint=chosen_aws.endpoint)
    assert send(chosen_aws, signed(other))[0] == 403


@pytest.fixture
def stalled(embedded_aws: EmbeddedAws) -> Iterator[ExitStack]:
    """More connections than the server keeps, each with an incomplete request."""
    place = urlsplit(embedded_aws.endpoint)
    head, body = signed(embedded_aws.connection).split(b"\r\n\r\n")
    unsigned = raw("POST", "/", {"host": place.netloc, "content-type": FORM}, IDENTITY)[:-5]
    parts = [b"", b"POST / HT", head[:60], unsigned, head + b"\r\n\r\n" + body[:5]]
    with ExitStack() as clients:
        for number in range(2 * http_server.MAX_UNKNOWN):
            client = clients.enter_context(socket.create_connection((place.hostname, place.port), timeout=10))
            client.sendall(parts[number % len(parts)])
        yield clients


def test_stalled_clients_do_not_delay_others(embedded_aws: EmbeddedAws, stalled: ExitStack) -> None:  # noqa: ARG001
    assert [send(embedded_aws, signed(embedded_aws.connection))[0] for _ in range(5)] == [200] * 5
    stacks = embedded_aws.client("cloudformation")
    resource = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "x"}}
    stacks.create_stack(StackName="beside-stalled", TemplateBody=json.dumps({"Resources": {"P": resource}}))
    stacks.get_waiter("stack_create_complete").wait(
        StackName="beside-stalled", WaiterConfig={"Delay": 1, "MaxAttempts": 60}
    )


@contextmanager
def listening() -> Generator[socket.socket]:
    """A server whose application is never reached."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = http_server.Server(listener, None)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield listener
        server.shutdown()
        server.server_close()


def test_client_that_sends_single_bytes_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.3)
    with listening() as listener, socket.create_connection(listener.getsockname(), timeout=20) as client:
        client.sendall(b"GET /")
        for _ in range(200):
            if select.select([client], [], [], 0.05)[0]:
                break
            client.send(b"x")
        else:
            pytest.fail("the server did not close the connection")


def test_too_large_body_is_not_read(embedded_aws: EmbeddedAws) -> None:
    request = signed(embedded_aws.connection)
    length = b"content-length: %d" % len(IDENTITY)
    assert length in request
    refused = send(embedded_aws, request.replace(length, b"content-length: %d" % (http_server.MAX_BODY + 1)))
    assert (refused[0], "EntityTooLarge" in refused[-1]) == (400, True)


@pytest.mark.parametrize("length", [b"-1", b"many"])
def test_invalid_content_length_is_a_bad_request(embedded_aws: EmbeddedAws, length: bytes) -> None:
    request = signed(embedded_aws.connection)
    own = b"content-length: %d" % len(IDENTITY)
    assert send(embedded_aws, request.replace(own, b"content-length: " + length))[0] == 400


def test_server_listens_on_loopback_only() -> None:
    refused = pytest.raises(ValueError, match=r"on loopback only, not on 0\.0\.0\.0")
    with socket.create_server(("0.0.0.0", 0)) as everywhere, refused:
        http_server.Server(everywhere, None)


TEXT = st.text("abc /+%~!*'()é", max_size=8)


@given(query=st.dictionaries(TEXT, TEXT, max_size=3), path=st.lists(TEXT.map(str.strip), max_size=3), body=st.binary())
@pytest.mark.parametrize("service", ["s3", "lambda"])
def test_every_request_signed_by_botocore_is_recognised(
    service: str, query: dict[str, str], path: list[str], body: bytes
) -> None:
    pairs = "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in query.items())
    target = "/" + "/".join(quote(part, safe="-_.~") for part in path) + (f"?{pairs}" if query else "")
    request = AWSRequest("POST", f"http://127.0.0.1:4599{target}", {"Host": "127.0.0.1:4599"}, body)
    signer = S3SigV4Auth if service == "s3" else SigV4Auth
    signer(Keys("TRNL", "secret"), service, "us-west-2").add_auth(request)
    headers = {name.lower(): str(value) for name, value in request.headers.items()}
    sent = SignedRequest(method="POST", target=target, headers=headers)
    signature = request_signature(sent)
    assert signature is not None
    assert signature.is_valid("secret", sent, body)
    assert not signature.is_valid("another", sent, body)
    assert not signature.is_valid("secret", sent, body + b"x")
