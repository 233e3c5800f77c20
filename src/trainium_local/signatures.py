"""Request signatures as botocore makes them: Version 4, and Version 2 in URLs that boto3 signs for S3.

botocore is imported late, so that reading a server's state does not wait for it.
"""

import hashlib
import hmac
import re
import time
from calendar import timegm
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"
MAX_SKEW = 15 * 60
"""Maximum clock difference of a signed request in seconds (Amazon S3 API Reference: RequestTimeTooSkewed)."""

_HEADER = re.compile(rf"{ALGORITHM} +Credential=([^,\s]+), *SignedHeaders=([^,\s]+), *Signature=([0-9a-f]+)")
_UNCHECKED_BODY = ("UNSIGNED-PAYLOAD", "STREAMING-")


@dataclass(frozen=True, kw_only=True)
class Credentials:
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(repr=False, default=None)


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request as sent. headers: names in lower case, repeated headers joined by commas."""

    method: str
    target: str
    headers: Mapping[str, str]

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))


@dataclass(frozen=True, kw_only=True)
class Signature:
    """The signature of a request. expires: seconds since 1970. signed_headers: None in Version 2."""

    access_key_id: str
    region: str = ""
    service: str = "s3"
    date: str = ""
    begins: float = 0
    expires: float
    signed_headers: Sequence[str] | None = None
    value: str

    def is_valid(self, secret: str, request: Request, body: bytes) -> bool:
        """Return whether the holder of `secret` made the signature, for this request, body and time."""
        claimed = request.headers.get("x-amz-content-sha256", "")
        if not self.begins <= time.time() <= self.expires:
            return False
        credentials = Credentials(access_key_id=self.access_key_id, secret_access_key=secret)
        if self.signed_headers is None:
            made = _version_2(credentials, request)
        elif not claimed or claimed.startswith(_UNCHECKED_BODY) or claimed == hashlib.sha256(body).hexdigest():
            made = self._version_4(credentials, request, body)
        else:
            return False
        return hmac.compare_digest(made.encode(), self.value.encode())

    def _version_4(self, credentials: Credentials, request: Request, body: bytes) -> str:
        from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth
        from botocore.awsrequest import AWSRequest

        for_s3 = S3SigV4Auth if "authorization" in request.headers else S3SigV4QueryAuth
        signer: Any = (for_s3 if self.service == "s3" else SigV4Auth)(_keys(credentials), self.service, self.region)
        path, _, query = request.target.partition("?")
        query = "&".join(pair for pair in query.split("&") if not pair.startswith("X-Amz-Signature="))
        headers = {name: request.headers.get(name, "") for name in self.signed_headers or ()}
        signed: Any = AWSRequest(request.method, f"http://{headers['host']}{path}?{query}", headers, body)
        signed.context["timestamp"] = self.date
        return signer.signature(signer.string_to_sign(signed, signer.canonical_request(signed)), signed)


def signature_of(request: Request) -> Signature | None:
    """Return the signature of a request, or None if it has no valid one."""
    try:
        return _from_header(request) if "authorization" in request.headers else _from_query(request.query)
    except (KeyError, ValueError):
        return None


def sign(credentials: Credentials, request: Request, body: bytes, *, region: str, service: str) -> dict[str, str]:
    """Return the headers of `request`, which must include the host, with a new signature."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    headers = {"x-amz-content-sha256": hashlib.sha256(body).hexdigest(), **request.headers}
    headers.pop("x-amz-security-token", None)
    named = {name: value for name, value in headers.items() if name == "host" or name.startswith("x-amz-")}
    signed: Any = AWSRequest(request.method, f"http://{headers['host']}{request.target}", named)
    signer: Any = SigV4Auth(_keys(credentials), service, region)
    if service == "s3":  # S3 signs the path as sent; other services encode it once more
        signer._normalize_url_path = str
    signer.add_auth(signed)
    return headers | {name.lower(): str(value) for name, value in signed.headers.items()}


def _from_header(request: Request) -> Signature | None:
    found = _HEADER.fullmatch(request.headers["authorization"].strip())
    return found and _of_version_4(found[1], found[2], found[3], request.headers["x-amz-date"], MAX_SKEW)


def _from_query(query: Mapping[str, str]) -> Signature | None:
    if "X-Amz-Signature" not in query:
        return Signature(access_key_id=query["AWSAccessKeyId"], expires=int(query["Expires"]), value=query["Signature"])
    credential, names, value, date, seconds = (
        query[f"X-Amz-{name}"] for name in ("Credential", "SignedHeaders", "Signature", "Date", "Expires")
    )
    return _of_version_4(credential, names, value, date, int(seconds))


def _of_version_4(credential: str, signed_headers: str, value: str, date: str, seconds: int) -> Signature | None:
    made, names = timegm(time.strptime(date, "%Y%m%dT%H%M%SZ")), signed_headers.split(";")
    found = re.fullmatch(rf"([^/]+)/{date[:8]}/([^/]+)/([^/]+)/aws4_request", credential)
    if found is None or "host" not in names:
        return None
    return Signature(
        access_key_id=found[1],
        region=found[2],
        service=found[3],
        date=date,
        begins=made - MAX_SKEW,
        expires=made + seconds,
        signed_headers=names,
        value=value,
    )


def _keys(credentials: Credentials) -> Any:
    from botocore.credentials import ReadOnlyCredentials

    return ReadOnlyCredentials(credentials.access_key_id, credentials.secret_access_key, credentials.session_token)


def _version_2(credentials: Credentials, request: Request) -> str:
    from botocore.auth import HmacV1Auth
    from botocore.compat import HTTPHeaders

    query = request.query
    signer: Any = HmacV1Auth(_keys(credentials))
    signer._get_date = lambda: query["Expires"]
    headers = {name.lower(): value for name, value in query.items()} | dict(request.headers)
    sent: Any = HTTPHeaders
    return signer.get_signature(request.method, urlsplit(request.target), sent.from_dict(headers))
