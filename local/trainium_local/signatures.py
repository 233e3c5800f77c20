"""Signatures of requests, as SDKs make them: Signature Version 4 and, in URLs that boto3 signs for S3, Version 2."""

import base64
import hashlib
import hmac
import re
import time
from calendar import timegm
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import normpath
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"
MOST_SKEW = 15 * 60
"""Seconds that the time of a signed request may differ from ours (Amazon S3 API Reference: RequestTimeTooSkewed)."""

_HEADER = re.compile(rf"{ALGORITHM} +Credential=([^,\s]+), *SignedHeaders=([^,\s]+), *Signature=([0-9a-f]+)")
_UNCHECKED_BODY = ("UNSIGNED-PAYLOAD", "STREAMING-")
_SUB_RESOURCES = re.compile(
    r"acl|cors|delete|lifecycle|location|logging|notification|partNumber|policy|replication|requestPayment|restore|"
    r"tagging|torrent|uploadId|uploads|versionId|versioning|versions|website|response-.*"
)


@dataclass(frozen=True, kw_only=True)
class Credentials:
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(repr=False, default=None)


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request as it stands on the wire. headers: in lower case, joined by commas where one comes twice."""

    method: str
    target: str
    headers: Mapping[str, str]

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))


@dataclass(frozen=True, kw_only=True)
class Signature:
    """What a request says of its signature. expires: seconds since 1970. signed_headers: None in Version 2."""

    access_key_id: str
    scope: str
    date: str
    begins: float
    expires: float
    signed_headers: Sequence[str] | None
    value: str

    @property
    def region(self) -> str:
        return self.scope.split("/")[1]

    @property
    def service(self) -> str:
        return self.scope.split("/")[2]

    def is_valid(self, secret: str, request: Request, body: bytes) -> bool:
        """Whether the holder of `secret` made it, for this request and body, and for this time."""
        if not self.begins <= time.time() <= self.expires:
            return False
        if self.signed_headers is None:
            return hmac.compare_digest(_signature_version_2(secret, request).encode(), self.value.encode())
        claimed = request.headers.get("x-amz-content-sha256", "")
        digest = hashlib.sha256(body).hexdigest()
        if claimed and not claimed.startswith(_UNCHECKED_BODY) and claimed != digest:
            return False
        presigned_for_s3 = "authorization" not in request.headers and self.service == "s3"
        hashed = claimed or ("UNSIGNED-PAYLOAD" if presigned_for_s3 else digest)
        made = _signature(secret, self.scope, self.date, _canonical(request, self.signed_headers, hashed, self.service))
        return hmac.compare_digest(made.encode(), self.value.encode())


def signature_of(request: Request) -> Signature | None:
    """The signature of a request, None if it has none that can be read."""
    try:
        return _from_header(request) if "authorization" in request.headers else _from_query(request.query)
    except (KeyError, ValueError):
        return None


def sign(
    credentials: Credentials,
    request: Request,
    body: bytes,
    *,
    region: str,
    service: str,
) -> dict[str, str]:
    """The headers of `request`, which must name the host, with a signature of ours in place of any other."""
    date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    hashed = request.headers.get("x-amz-content-sha256") or hashlib.sha256(body).hexdigest()
    headers = {name: value for name, value in request.headers.items() if name != "x-amz-security-token"}
    headers |= {"x-amz-date": date, "x-amz-content-sha256": hashed}
    if credentials.session_token:
        headers["x-amz-security-token"] = credentials.session_token
    names = sorted(name for name in headers if name == "host" or name.startswith("x-amz-"))
    scope = f"{date[:8]}/{region}/{service}/aws4_request"
    ours = Request(method=request.method, target=request.target, headers=headers)
    value = _signature(credentials.secret_access_key, scope, date, _canonical(ours, names, hashed, service))
    credential = f"Credential={credentials.access_key_id}/{scope}"
    headers["authorization"] = f"{ALGORITHM} {credential}, SignedHeaders={';'.join(names)}, Signature={value}"
    return headers


def _from_header(request: Request) -> Signature | None:
    found = _HEADER.fullmatch(request.headers["authorization"].strip())
    return found and _version_4(found[1], found[2], found[3], request.headers["x-amz-date"], MOST_SKEW)


def _from_query(query: Mapping[str, str]) -> Signature | None:
    if "X-Amz-Signature" in query:
        credential, names, value, date, seconds = (
            query[f"X-Amz-{name}"] for name in ("Credential", "SignedHeaders", "Signature", "Date", "Expires")
        )
        return _version_4(credential, names, value, date, int(seconds))
    return Signature(
        access_key_id=query["AWSAccessKeyId"],
        scope="//s3/",  # it names none
        date="",
        begins=0,
        expires=int(query["Expires"]),
        signed_headers=None,
        value=query["Signature"],
    )


def _version_4(credential: str, signed_headers: str, value: str, date: str, seconds: int) -> Signature | None:
    access_key_id, scope = credential.split("/", 1)
    made = timegm(time.strptime(date, "%Y%m%dT%H%M%SZ"))
    names = signed_headers.split(";")
    if "host" not in names or not re.fullmatch(rf"{date[:8]}/[^/]+/[^/]+/aws4_request", scope):
        return None
    return Signature(
        access_key_id=access_key_id,
        scope=scope,
        date=date,
        begins=made - MOST_SKEW,
        expires=made + seconds,
        signed_headers=names,
        value=value,
    )


def _canonical(request: Request, signed_headers: Sequence[str], hashed_body: str, service: str) -> str:
    path, _, query = request.target.partition("?")
    if service != "s3":  # S3 signs the path as it is sent, the others encode it once more
        path = quote(
            normpath("/" + path.lstrip("/")) + "/" * (path.rstrip("/") != "" and path.endswith("/")), safe="/~"
        )
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    encoded = sorted((_encoded(name), _encoded(value)) for name, _, value in pairs if name != "X-Amz-Signature")
    headers = [f"{name}:{' '.join(request.headers.get(name, '').split())}" for name in signed_headers]
    queries = "&".join(f"{name}={value}" for name, value in encoded)
    return "\n".join([request.method, path, queries, *headers, "", ";".join(signed_headers), hashed_body])


def _encoded(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ")), safe="-_.~")


def _signature(secret: str, scope: str, date: str, canonical: str) -> str:
    key = f"AWS4{secret}".encode()
    to_sign = "\n".join([ALGORITHM, date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, to_sign.encode(), "sha256").hex()


def _signature_version_2(secret: str, request: Request) -> str:
    path, query = request.target.partition("?")[0], request.query
    given = {name.lower(): value for name, value in query.items()} | dict(request.headers)
    lines = [request.method, given.get("content-md5", ""), given.get("content-type", ""), query["Expires"]]
    lines += [f"{name}:{given[name].strip()}" for name in sorted(given) if name.startswith("x-amz-")]
    kept = sorted((name, value) for name, value in query.items() if _SUB_RESOURCES.fullmatch(name))
    resource = "&".join(f"{name}={value}" if value else name for name, value in kept)
    to_sign = "\n".join([*lines, f"{path}?{resource}" if resource else path])
    return base64.b64encode(hmac.digest(secret.encode(), to_sign.encode(), "sha1")).decode()
