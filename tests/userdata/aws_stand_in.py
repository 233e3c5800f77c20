"""The services that a node or a pod calls, on loopback: metadata (IMDSv2 only), Pod Identity, S3 and secrets."""

import hashlib
import json
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, quote_plus, unquote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

INSTANCE_ID = "i-0123456789abcdef0"
ADDRESS = "10.42.0.11"
ROLE = "cluster-node"
ACCESS_KEY_ID = "ASIAIOSFODNN7EXAMPLE"
SECRET_KEY = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SESSION_TOKEN = "IQoJb3JpZ2luX2VjEXAMPLE/+=="
METADATA_TOKEN = "AQAEAEXAMPLE-metadata-token=="
SECRETS = (SECRET_KEY, SESSION_TOKEN, METADATA_TOKEN)
CREDENTIALS = (
    f'{{\n  "Code" : "Success",\n  "AccessKeyId" : "{ACCESS_KEY_ID}",\n'
    f'  "SecretAccessKey" : "{SECRET_KEY}",\n  "Token" : "{SESSION_TOKEN}"\n}}'
)
POD_TOKEN = "eyJEXAMPLE-pod-token"
TOKEN_HEADER = "X-aws-ec2-metadata-token"


class AwsStandIn:
    """All services on one port.

    Attributes:
        has_instance_id: Whether the metadata service returns the instance ID.
        s3_refuses: Whether S3 denies every request.
        clock_ahead: How far the clock of the services is ahead of ours.
        failures: How many of the next requests are answered with status 503.
        put_status: Returns the status of the response to a PUT by the name of the object; 200: the object is stored.
        get_status: The same for a GET of S3.
        identity_status: Status code of the credentials of a pod.
        notices: Texts of the metadata service, by path below /latest/meta-data.
        records: The stored bytes as text (see `as_text`), by `bucket/key`.
        parts: The parts of the last multipart upload.
        secrets: The values of secrets, by ARN.
        throttled: How many of the next requests for a secret are throttled.
    """

    def __init__(self, *, region: str) -> None:
        self.region = region
        self.has_instance_id = True
        self.s3_refuses = False
        self.clock_ahead = timedelta()
        self.failures = 0
        self.put_status: Callable[[str], int] = lambda _name: 200
        self.get_status: Callable[[str], int] = lambda _name: 200
        self.identity_status: Callable[[], int] = lambda: 200
        self.notices: dict[str, str] = {}
        self.records: dict[str, str] = {}
        self.metadata_of: dict[str, dict[str, str]] = {}
        self.content_types: list[str | None] = []
        self.parts: list[bytes] = []
        self.secrets: dict[str, str] = {}
        self.throttled = 0
        self.refusals: list[str] = []
        self._writing = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def loopback_environment(self) -> dict[str, str]:
        """The environment that makes `trn-node` call this server: in path style, which needs no resolver."""
        endpoint = f"http://127.0.0.1:{self._server.server_port}"
        names = ("EC2_METADATA_SERVICE_ENDPOINT", "ENDPOINT_URL_S3", "ENDPOINT_URL_SSM", "ENDPOINT_URL_SECRETS_MANAGER")
        return {f"AWS_{name}": endpoint for name in names}

    def pod_environment(self, folder: Path) -> dict[str, str]:
        """The same for a pod, which has credentials of EKS Pod Identity and no metadata service."""
        endpoints = self.loopback_environment
        address = endpoints["AWS_EC2_METADATA_SERVICE_ENDPOINT"]
        token = folder / "pod-token"
        token.write_text(POD_TOKEN)
        return {
            **endpoints,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{address}/v1/credentials",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token),
            "AWS_REGION": self.region,
        }

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self.clock_ahead

    def metadata(self, path: str) -> str | None:
        role = "/latest/meta-data/iam/security-credentials/"
        answers = {
            **{f"/latest/meta-data/{path}": text for path, text in self.notices.items()},
            "/latest/meta-data/local-ipv4": ADDRESS,
            "/latest/meta-data/instance-id": INSTANCE_ID if self.has_instance_id else None,
            role: ROLE,
            role + ROLE: CREDENTIALS,
        }
        return answers.get(path)

    def store(self, host: str, path: str, headers: dict[str, str], body: bytes) -> str | None:
        """Store an object. Returns the S3 error code if it is refused."""
        refusal = self._refusal("PUT", host, path, headers, body)
        with self._writing:
            if headers.get("if-none-match") == "*" and _object_name(host, path) in self.records:
                refusal = refusal or "PreconditionFailed"
            if refusal is None:
                self.records[_object_name(host, path)] = as_text(body)
                self.content_types.append(headers.get("content-type"))
                user_metadata = {name: value for name, value in headers.items() if name.startswith("x-amz-meta-")}
                self.metadata_of[_object_name(host, path)] = user_metadata
        return refusal

    def load(self, host: str, path: str, headers: dict[str, str]) -> tuple[int, str, str]:
        """Status, text and ETag of S3's response to a GET."""
        refusal = self._refusal("GET", host, path, headers, b"")
        path, _, query = path.partition("?")
        text = self.records.get(_object_name(host, path))
        if refusal:
            return 403, f"<Error><Code>{refusal}</Code></Error>", ""
        if query:
            parameters = parse_qs(query)
            write = quote_plus if "encoding-type" in parameters else str
            below = "delimiter" not in parameters
            return 200, self._list(_object_name(host, path), parameters["prefix"][0], write, below=below), ""
        if text is None:
            return 404, "<Error><Code>NoSuchKey</Code></Error>", ""
        etag = f'"{hashlib.md5(text.encode(errors="surrogateescape")).hexdigest()}"'
        return (304, "", etag) if headers.get("if-none-match") == etag else (200, text, etag)

    def store_part(self, host: str, path: str, headers: dict[str, str], body: bytes) -> str | None:
        """Store a part of the only multipart upload. Returns the S3 error code if it is refused."""
        refusal = self._refusal("PUT", host, path, headers, body)
        if refusal is None:
            number = int(parse_qs(urlsplit(path).query)["partNumber"][0])
            self.parts[number - 1 :] = [body]
        return refusal

    def post(self, host: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        """Begin or complete a multipart upload, or return the value of a secret."""
        if "x-amz-target" in headers:
            return self._secret(host, path, headers, body)
        refusal = self._refusal("POST", host, path, headers, body)
        if refusal:
            return 403, f"<Error><Code>{refusal}</Code></Error>"
        path, _, query = path.partition("?")
        if query == "uploads=":
            self.parts = []
            return 200, "<InitiateMultipartUploadResult><UploadId>an/id</UploadId></InitiateMultipartUploadResult>"
        assert body.count(b"<ETag>") == len(self.parts)
        self.records[_object_name(host, path)] = as_text(b"".join(self.parts))
        return 200, "<CompleteMultipartUploadResult/>"

    def _secret(self, host: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        service, member = ("ssm", "Name") if "SSM" in headers["x-amz-target"] else ("secretsmanager", "SecretId")
        if headers.get("authorization") != self._signed("POST", host, path, headers, body, service):
            return 403, '{"__type": "InvalidSignatureException"}'
        if self.throttled:
            self.throttled -= 1
            return 400, '{"__type": "ThrottlingException", "message": "Rate exceeded"}'
        value = self.secrets.get(json.loads(body)[member])
        if value is None:
            return 400, '{"__type": "com.amazon#AccessDeniedException", "Message": "no policy allows it"}'
        return 200, json.dumps({"SecretString": value} if service != "ssm" else {"Parameter": {"Value": value}})

    def _list(self, bucket: str, prefix: str, write: Callable[[str], str], *, below: bool) -> str:
        """The response of ListObjectsV2, all on one page.

        Args:
            bucket: Name of the bucket, and a slash.
            prefix: Prefix of the keys.
            write: Encodes a key.
            below: Whether there is no delimiter.
        """
        known = {unquote(name): len(text) for name, text in self.records.items()}
        sizes = {name.removeprefix(bucket): size for name, size in known.items() if name.startswith(bucket + prefix)}
        items = "".join(
            f"<Contents><Key>{write(name)}</Key><LastModified>2026-11-21T12:00:00.000Z</LastModified><Size>{size}</Size>"
            "</Contents>"
            for name, size in sorted(sizes.items())
            if below or "/" not in name.removeprefix(prefix)
        )
        return f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{items}</ListBucketResult>'

    def _refusal(self, method: str, host: str, path: str, headers: dict[str, str], body: bytes) -> str | None:
        sent = datetime.strptime(headers.get("x-amz-date", "19700101T000000Z"), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if self.s3_refuses:
            refusal = "AccessDenied"
        elif headers.get("x-amz-security-token") != SESSION_TOKEN:
            refusal = "InvalidToken"
        elif headers.get("x-amz-content-sha256") not in (hashlib.sha256(body).hexdigest(), "UNSIGNED-PAYLOAD"):
            refusal = "XAmzContentSHA256Mismatch"
        elif abs((self.now - sent).total_seconds()) > 900:
            refusal = "RequestTimeTooSkewed"
        elif headers.get("authorization") != self._signed(method, host, path, headers, body):
            refusal = "SignatureDoesNotMatch"
        else:
            return None
        self.refusals.append(refusal)
        return refusal

    def _signed(
        self, method: str, host: str, path: str, headers: dict[str, str], body: bytes, service: str = "s3"
    ) -> str | None:
        """The authorization header that botocore's own signer creates for a request with these headers, or None."""
        found = re.search(r"SignedHeaders=([^,\s]+)", headers.get("authorization", ""))
        if found is None:
            return None
        signed = {name: headers[name] for name in found[1].split(";")}
        if not {name for name in headers if name.startswith("x-amz-")} | {"host"} <= set(signed):
            return None
        request = AWSRequest(method=method, url=f"http://{host}{path}", data=body, headers=signed)
        request.context["timestamp"] = headers["x-amz-date"]
        # Other services escape paths twice; these paths contain no escapes.
        signer = S3SigV4Auth(Credentials(ACCESS_KEY_ID, SECRET_KEY), service, self.region)
        text = signer.string_to_sign(request, signer.canonical_request(request))
        signature = signer.signature(text, request)
        return f"AWS4-HMAC-SHA256 Credential={signer.scope(request)}, SignedHeaders={found[1]}, Signature={signature}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        aws = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self._fails():
                    return None
                if self.path == "/v1/credentials":
                    is_pod = self.headers["Authorization"] == POD_TOKEN
                    status = aws.identity_status() if is_pod else 401
                    return self._answer(status, CREDENTIALS if status == 200 else "")
                if not self.path.startswith("/latest/"):
                    status = aws.get_status(_object_name(self.headers["Host"], self.path))
                    if status != 200:
                        return self._answer(status, _error(status))
                    headers = {name.lower(): value for name, value in self.headers.items()}
                    status, text, etag = aws.load(self.headers["Host"], self.path, headers)
                    user_metadata = aws.metadata_of.get(_object_name(self.headers["Host"], self.path), {})
                    return self._answer(status, text, {"ETag": etag, **user_metadata} if etag else {})
                if self.headers.get(TOKEN_HEADER) != METADATA_TOKEN:
                    return self._answer(401)
                answer = aws.metadata(self.path)
                return self._answer(404) if answer is None else self._answer(200, answer)

            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self._fails():
                    return None
                if self.path == "/latest/api/token":
                    has_ttl = f"{TOKEN_HEADER}-ttl-seconds" in self.headers
                    return self._answer(200, METADATA_TOKEN) if has_ttl else self._answer(400)
                status = aws.put_status(_object_name(self.headers["Host"], urlsplit(self.path).path))
                if status != 200:
                    return self._answer(status, _error(status))
                headers = {name.lower(): value for name, value in self.headers.items()}
                if "partNumber=" in self.path:
                    refusal = aws.store_part(self.headers["Host"], self.path, headers, body)
                else:
                    refusal = aws.store(self.headers["Host"], urlsplit(self.path).path, headers, body)
                if refusal is None:
                    return self._answer(200, headers={"ETag": f'"{hashlib.md5(body).hexdigest()}"'})
                status = 412 if refusal == "PreconditionFailed" else 403
                return self._answer(status, f"<Error><Code>{refusal}</Code></Error>")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self._fails():
                    return None
                headers = {name.lower(): value for name, value in self.headers.items()}
                return self._answer(*aws.post(self.headers["Host"], self.path, headers, body))

            def _fails(self) -> bool:
                if aws.failures:
                    aws.failures -= 1
                    self._answer(503)
                    return True
                return False

            def _answer(self, status: int, text: str = "", headers: dict[str, str] | None = None) -> None:
                body = text.encode(errors="surrogateescape")
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def date_time_string(self, timestamp: float | None = None) -> str:  # noqa: ARG002
                return format_datetime(aws.now, usegmt=True)

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing: the tests look at the responses."""

        return Handler


def _error(status: int) -> str:
    return f"<Error><Code>{'AccessDenied' if status == 403 else 'SlowDown'}</Code></Error>"


def as_text(body: bytes) -> str:
    """Any bytes as text, reversibly."""
    return body.decode(errors="surrogateescape")


def _object_name(host: str, path: str) -> str:
    """Bucket and key, from a URL in either style."""
    return path.lstrip("/") if host.startswith("127.") else host.split(".")[0] + path
