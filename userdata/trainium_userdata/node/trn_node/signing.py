"""Requests to AWS, signed with the credentials of the instance's role (Signature Version 4)."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from . import files
from .imds import Imds


def region() -> str:
    """The region of this node. Raises OSError if it is unknown."""
    return files.location("TRN_REGION")


def signed_headers(
    service: str, method: str, address: str, headers: Mapping[str, str], digest: str, imds: Imds, now: float
) -> dict[str, str]:
    """The headers with a signature (AWS documentation, Signature Version 4). Raises OSError without keys or region.

    `digest` is the SHA-256 of the body in hexadecimal.
    """
    keys = imds.credentials()
    parts = urlsplit(address)
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    all_headers = {
        **headers,
        "host": parts.netloc,
        "x-amz-content-sha256": digest,
        "x-amz-date": moment,
        "x-amz-security-token": keys.token,
    }
    names = ";".join(sorted(all_headers))
    lines = "".join(f"{name}:{all_headers[name]}\n" for name in sorted(all_headers))
    request = f"{method}\n{parts.path}\n{parts.query}\n{lines}\n{names}\n{digest}"
    scope = f"{moment[:8]}/{region()}/{service}/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{keys.secret_access_key}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    return {
        **all_headers,
        "authorization": f"AWS4-HMAC-SHA256 Credential={keys.access_key_id}/{scope}, SignedHeaders={names}, "
        f"Signature={signature}",
    }
