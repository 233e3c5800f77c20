"""The two services a node talks to, on loopback: instance metadata (IMDSv2 only) and S3, which checks signatures."""

import hashlib
import re
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

INSTANCE_ID = "i-0123456789abcdef0"
ROLE = "cluster-node"
ACCESS_KEY_ID = "ASIAIOSFODNN7EXAMPLE"
SECRET_KEY = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SESSION_TOKEN = "IQoJb3JpZ2luX2VjEXAMPLE/+=="
METADATA_TOKEN = "AQAEAEXAMPLE-metadata-token=="
SECRETS = (SECRET_KEY, SESSION_TOKEN, METADATA_TOKEN)
TOKEN_HEADER = "X-aws-ec2-metadata-token"


class AwsStandIn:
    """Both services on one port. `records` maps `bucket/key` to what was stored there.

    has_instance_id: whether the metadata service knows the instance id. s3_refuses: S3 denies every request.
    """

    def __init__(self, *, region: str) -> None:
        self.region = region
        self.has_instance_id = True
        self.s3_refuses = False
        self.records: dict[str, str] = {}
        self.content_types: list[str | None] = []
        self.refusals: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """What makes the node's script ask here. curl resolves every name under localhost to loopback itself."""
        port = self._server.server_port
        return {
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{port}",
            "AWS_ENDPOINT_URL_S3": f"http://s3.localhost:{port}",
        }

    def metadata(self, path: str) -> str | None:
        role = "/latest/meta-data/iam/security-credentials/"
        answers = {
            "/latest/meta-data/instance-id": INSTANCE_ID if self.has_instance_id else None,
            role: ROLE,
            role + ROLE: f'{{\n  "Code" : "Success",\n  "AccessKeyId" : "{ACCESS_KEY_ID}",\n'
            f'  "SecretAccessKey" : "{SECRET_KEY}",\n  "Token" : "{SESSION_TOKEN}"\n}}',
        }
        return answers.get(path)

    def store(self, host: str, path: str, headers: dict[str, str], body: bytes) -> str | None:
        """Store an object; the S3 error code if it is refused."""
        if self.s3_refuses:
            refusal = "AccessDenied"
        elif headers.get("x-amz-security-token") != SESSION_TOKEN:
            refusal = "InvalidToken"
        elif headers.get("x-amz-content-sha256") not in (hashlib.sha256(body).hexdigest(), "UNSIGNED-PAYLOAD"):
            refusal = "XAmzContentSHA256Mismatch"
        elif headers.get("authorization") != self._signed(host, path, headers, body):
            refusal = "SignatureDoesNotMatch"
        else:
            self.records[host.split(".")[0] + path] = body.decode()
            self.content_types.append(headers.get("content-type"))
            return None
        self.refusals.append(refusal)
        return refusal

    def _signed(self, host: str, path: str, headers: dict[str, str], body: bytes) -> str | None:
        """The authorization header botocore's own signer gives a request with these headers; None if there is none."""
        found = re.search(r"SignedHeaders=([^,\s]+)", headers.get("authorization", ""))
        sent = datetime.strptime(headers.get("x-amz-date", "19700101T000000Z"), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if found is None or abs((datetime.now(UTC) - sent).total_seconds()) > 900:
            return None
        signed = {name: headers[name] for name in found[1].split(";")}
        if not {name for name in headers if name.startswith("x-amz-")} | {"host"} <= set(signed):
            return None
        request = AWSRequest(method="PUT", url=f"http://{host}{path}", data=body, headers=signed)
        request.context["timestamp"] = headers["x-amz-date"]
        signer = S3SigV4Auth(Credentials(ACCESS_KEY_ID, SECRET_KEY), "s3", self.region)
        text = signer.string_to_sign(request, signer.canonical_request(request))
        signature = signer.signature(text, request)
        return f"AWS4-HMAC-SHA256 Credential={signer.scope(request)}, SignedHeaders={found[1]}, Signature={signature}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        aws = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.headers.get(TOKEN_HEADER) != METADATA_TOKEN:
                    return self._answer(401)
                answer = aws.metadata(self.path)
                return self._answer(404) if answer is None else self._answer(200, answer)

            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path == "/latest/api/token":
                    has_ttl = f"{TOKEN_HEADER}-ttl-seconds" in self.headers
                    return self._answer(200, METADATA_TOKEN) if has_ttl else self._answer(400)
                headers = {name.lower(): value for name, value in self.headers.items()}
                refusal = aws.store(self.headers["Host"], urlsplit(self.path).path, headers, body)
                return self._answer(403, f"<Error><Code>{refusal}</Code></Error>") if refusal else self._answer(200)

            def _answer(self, status: int, text: str = "") -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing: the tests look at what was answered."""

        return Handler
