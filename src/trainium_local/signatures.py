"""Request signatures as botocore makes them: Version 4 in the header. Presigned URLs are not accepted.

botocore is imported late, so that a command that finds no running server does not wait for it.
"""

import hashlib
import hmac
import re
import time
from calendar import timegm
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ALGORITHM = "AWS4-HMAC-SHA256"
MAX_SKEW = 15 * 60
"""Maximum clock difference of a signed request in seconds (Amazon S3 API Reference: RequestTimeTooSkewed)."""

_HEADER = re.compile(rf"{ALGORITHM} +Credential=([^,\s]+), *SignedHeaders=([^,\s]+), *Signature=([0-9a-f]+)")
_UNCHECKED_BODY = ("UNSIGNED-PAYLOAD", "STREAMING-")


@dataclass(frozen=True, kw_only=True)
class SigningCredentials:
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(repr=False, default=None)


@dataclass(frozen=True, kw_only=True)
class SignedRequest:
    """A request as sent.

    Attributes:
        target: Path and query.
        headers: Names are in lower case. Repeated headers are joined by commas.
    """

    method: str
    target: str
    headers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Signature:
    """The signature of a request.

    Attributes:
        region: The region in the credential scope.
        service: The service in the credential scope.
        date: The header x-amz-date.
        signed_at: `date` in seconds since 1970.
        signed_headers: Names of the signed headers.
    """

    access_key_id: str
    region: str
    service: str
    date: str
    signed_at: float
    signed_headers: Sequence[str]
    value: str

    def is_valid(self, secret: str, request: SignedRequest, body: bytes) -> bool:
        """Return whether the holder of `secret` made the signature, for this request and time.

        The body is not checked if the request declares its payload as unsigned or streaming.
        """
        claimed = request.headers.get("x-amz-content-sha256", "")
        if abs(time.time() - self.signed_at) > MAX_SKEW:
            return False
        if claimed and not claimed.startswith(_UNCHECKED_BODY) and claimed != hashlib.sha256(body).hexdigest():
            return False
        credentials = SigningCredentials(access_key_id=self.access_key_id, secret_access_key=secret)
        return hmac.compare_digest(self._version_4(credentials, request, body).encode(), self.value.encode())

    def _version_4(self, credentials: SigningCredentials, request: SignedRequest, body: bytes) -> str:
        from botocore.auth import S3SigV4Auth, SigV4Auth
        from botocore.awsrequest import AWSRequest

        kind = S3SigV4Auth if self.service == "s3" else SigV4Auth
        signer: Any = kind(_keys(credentials), self.service, self.region)
        headers = {name: request.headers.get(name, "") for name in self.signed_headers}
        signed: Any = AWSRequest(request.method, f"http://{headers['host']}{request.target}", headers, body)
        signed.context["timestamp"] = self.date
        return signer.signature(signer.string_to_sign(signed, signer.canonical_request(signed)), signed)


def request_signature(request: SignedRequest) -> Signature | None:
    """Parse the signature of a request, without verification. None if it is missing or malformed."""
    headers = request.headers
    match = _HEADER.fullmatch(headers.get("authorization", "").strip())
    date = headers.get("x-amz-date", "")
    scope = re.fullmatch(rf"([^/]+)/{re.escape(date[:8])}/([^/]+)/([^/]+)/aws4_request", match[1]) if match else None
    if match is None or scope is None or "host" not in match[2].split(";"):
        return None
    try:
        signed_at = timegm(time.strptime(date, "%Y%m%dT%H%M%SZ"))
    except ValueError:
        return None
    return Signature(
        access_key_id=scope[1],
        region=scope[2],
        service=scope[3],
        date=date,
        signed_at=signed_at,
        signed_headers=match[2].split(";"),
        value=match[3],
    )


def sign(
    credentials: SigningCredentials, request: SignedRequest, body: bytes, *, region: str, service: str
) -> dict[str, str]:
    """Return the headers of a request, which must include host, with a new signature."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    headers = {"x-amz-content-sha256": hashlib.sha256(body).hexdigest(), **request.headers}
    headers.pop("x-amz-security-token", None)
    named = {name: value for name, value in headers.items() if name == "host" or name.startswith("x-amz-")}
    signed: Any = AWSRequest(request.method, f"http://{headers['host']}{request.target}", named)
    signer: Any = SigV4Auth(_keys(credentials), service, region)
    if service == "s3":  # S3 signs the path as sent; other services encode the path once more
        signer._normalize_url_path = str
    signer.add_auth(signed)
    return headers | {name.lower(): str(value) for name, value in signed.headers.items()}


def _keys(credentials: SigningCredentials) -> Any:
    from botocore.credentials import ReadOnlyCredentials

    return ReadOnlyCredentials(credentials.access_key_id, credentials.secret_access_key, credentials.session_token)
