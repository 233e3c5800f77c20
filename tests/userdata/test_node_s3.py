"""A node's requests to its metadata service and S3: retries, signatures, clocks."""

import socket
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from email.message import Message
from pathlib import Path

import pytest
from trn_pod.identity import PodIdentity

from tests.nasty_names import NASTY_NAMES
from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from trainium_userdata.node.trn_node import imds, objects, web
from trainium_userdata.node.trn_node.imds import Imds
from trainium_userdata.node.trn_node.objects import Objects
from trainium_userdata.node.trn_node.s3 import S3, S3Error

URL = "s3://cluster-records/nodes/i-0+a b.json"


@pytest.fixture(autouse=True)
def _node(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etc/trn").mkdir(parents=True)
    (tmp_path / "etc/trn/places.env").write_text(f"TRN_REGION={aws.region}\n")
    settings = {"ROOT": str(tmp_path), "TRN_HTTP_PAUSE": "0", "TRN_HTTP_RETRIES": "2", **aws.loopback_environment}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


def test_temporarily_failing_service_is_retried(aws: AwsStandIn):
    aws.failures = 2
    assert Imds().get("instance-id") == INSTANCE_ID


def test_unavailable_service_is_reported(aws: AwsStandIn):
    aws.failures = 99
    with pytest.raises(OSError, match="the metadata service returns 503 for instance-id"):
        Imds().get("instance-id")


def test_credentials_are_renewed_after_a_minute_and_not_before(aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch):
    service = Imds(retries=0)
    found = service.credentials()
    aws.failures = 2
    assert service.credentials() == found
    monkeypatch.setattr(imds, "CREDENTIALS_SECONDS", 0)
    with pytest.raises(OSError, match="503"):
        service.credentials()


@pytest.fixture
def pod(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes this process one of a pod. Returns the file with the token for its credentials."""
    (tmp_path / "etc/trn/places.env").write_text(f"TRN_REGION={aws.region}\n")
    for name, value in aws.pod_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    return tmp_path / "pod-token"


@pytest.mark.usefixtures("pod")
def test_pod_stores_objects_with_the_credentials_of_pod_identity(aws: AwsStandIn):
    S3(PodIdentity(retries=0)).put(URL, b"{}")
    assert [*aws.records.values()] == ["{}"]


def test_token_of_pod_identity_is_read_again_after_its_renewal(pod: Path):
    current = pod.read_text()
    pod.write_text("expired")
    with pytest.raises(OSError, match="EKS Pod Identity returns no credentials, but status 401"):
        PodIdentity(retries=0).credentials()
    pod.write_text(current)
    assert PodIdentity(retries=0).credentials()


def test_ca_certificates_are_read_once(monkeypatch: pytest.MonkeyPatch):
    made: list[ssl.SSLContext] = []
    create = ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", lambda: made.append(create()) or made[-1])
    web.cached_opener.cache_clear()
    with ThreadPoolExecutor(4) as threads:
        [*threads.map(web.opener, ["https"] * 4)]
    web.cached_opener.cache_clear()
    assert len(made) == 1


def test_truncated_response_is_an_oserror():
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as thread:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        for status in (b"200", b"503"):
            response = thread.submit(web.send, "GET", url, {})
            with listener.accept()[0] as client:
                client.recv(4096)
                client.sendall(b"HTTP/1.1 %s x\r\nContent-Length: 9\r\n\r\ncut" % status)
            with pytest.raises(OSError, match="IncompleteRead"):
                response.result()


def test_unchanged_object_is_not_downloaded_again():
    S3().put(URL, b"{}")
    found = S3().get(URL)
    assert found
    assert S3().get(URL, found[1]) is None


def test_missing_file_is_reported_and_failing_service_is_retried(tmp_path: Path, aws: AwsStandIn):
    assert not Objects().get_file(URL, tmp_path / "copy")
    (tmp_path / "file").write_bytes(b"content")
    objects = Objects()
    aws.failures = 2
    objects.put_file(URL, tmp_path / "file")
    aws.failures = 2
    assert objects.get_file(URL, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"content"


def test_large_file_is_stored_in_parts_that_are_each_retried(
    tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch
):
    digest = objects.FilePart.digest

    def digest_before_failures(part: objects.FilePart) -> str:
        aws.failures = 2  # of the requests that store the part
        return digest(part)

    monkeypatch.setattr(objects, "PART_BYTES", 1000)
    monkeypatch.setattr(objects.FilePart, "digest", digest_before_failures)
    (tmp_path / "large").write_bytes(bytes(range(256)) * 10)
    Objects().put_file(URL, tmp_path / "large")
    assert Objects().get_file(URL, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "large").read_bytes()
    assert [len(part) for part in aws.parts] == [1000, 1000, 560]


def test_growing_file_is_stored_as_long_as_it_was(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch):
    digest = objects.FilePart.digest

    def grow(part: objects.FilePart) -> str:
        found = digest(part)
        with (tmp_path / "log").open("a") as log:
            log.write("second line\n")
        return found

    monkeypatch.setattr(objects.FilePart, "digest", grow)
    (tmp_path / "log").write_text("first line\n")
    Objects().put_file(URL, tmp_path / "log")
    assert [*aws.records.values()] == ["first line\n"]


def test_file_has_no_more_parts_than_s3_allows(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(objects, "PART_BYTES", 1)
    monkeypatch.setattr(objects, "MAX_PARTS", 3)
    (tmp_path / "large").write_bytes(b"x" * 10)
    Objects().put_file(URL, tmp_path / "large")
    assert [len(part) for part in aws.parts] == [4, 4, 2]


def test_keys_may_have_any_character(tmp_path: Path):
    objects, folder = Objects(), "s3://cluster-records/outputs/"
    for name in NASTY_NAMES:
        (tmp_path / "file").write_bytes(name.encode())
        objects.put_file(folder + name, tmp_path / "file")
    assert {found.key.removeprefix("outputs/") for found in objects.list(folder, below=True)} == {*NASTY_NAMES}
    for name in NASTY_NAMES:
        assert objects.get_file(folder + name, tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == name.encode()


def test_folder_is_listed_without_its_subfolders():
    for name in ("a b.json", "a/c.json"):
        S3().put(f"s3://cluster-records/jobs/{name}", b"{}")
    assert [found.key for found in Objects().list("s3://cluster-records/jobs/")] == ["jobs/a b.json"]


@pytest.mark.parametrize(
    ("bucket", "address"),
    [
        ("cluster-records", "https://cluster-records.s3.us-west-2.amazonaws.com/key"),
        ("cluster.records", "https://s3.us-west-2.amazonaws.com/cluster.records/key"),
    ],
)
def test_bucket_hostname_matches_the_certificate_of_s3(
    bucket: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "etc/trn/places.env").write_text("TRN_REGION=us-west-2\n")
    urls: list[str] = []

    def send(_method: str, url: str, _headers: Mapping[str, str], *_: object) -> web.Response:
        urls.append(url)
        return web.Response(200, Message(), b"")

    service = Imds()
    keys = service.credentials()
    monkeypatch.setattr(service, "credentials", lambda: keys)
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
    monkeypatch.setattr(web, "send", send)
    S3(service).put(f"s3://{bucket}/key", b"{}")
    assert urls == [address]


def test_refusal_is_reported_with_the_code_of_s3(aws: AwsStandIn):
    aws.s3_refuses = True
    with pytest.raises(S3Error, match=r"S3 refuses PUT s3://.*: 403 AccessDenied") as caught:
        S3().put(URL, b"{}")
    assert (caught.value.status, caught.value.code) == (403, "AccessDenied")


@pytest.mark.parametrize("ahead", [timedelta(hours=-2), timedelta(days=400)])
def test_node_with_a_wrong_clock_can_report(aws: AwsStandIn, ahead: timedelta):
    aws.clock_ahead = ahead
    s3 = S3()
    s3.put(URL, b"{}")
    assert s3.clock_offset == pytest.approx(ahead.total_seconds(), abs=5)  # pyright: ignore[reportUnknownMemberType]
    assert aws.records
