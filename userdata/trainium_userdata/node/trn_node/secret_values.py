"""Reads secrets by ARN, with the credentials of the instance's role."""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import Any, NamedTuple

from . import web
from .imds import Imds
from .signing import region, signed_headers


class SecretError(OSError):
    """AWS does not return a value, and retries do not help. The message is a sentence that never contains the value."""


class Service(NamedTuple):
    """The request for a value.

    Attributes:
        name: Name of the service in host names and signatures.
        endpoint: Variable with a custom endpoint.
        target: Header x-amz-target of the request.
        name_key: Key of the secret's ARN in the request.
        value: Path of keys to the value in the response.
        options: Other parameters of the request.
    """

    name: str
    endpoint: str
    target: str
    name_key: str
    value: tuple[str, ...]
    options: dict[str, Any]


THROTTLED = 429
_FINAL = (400, 403, 404)
SERVICES = {
    "secretsmanager": Service(
        "secretsmanager",
        "AWS_ENDPOINT_URL_SECRETS_MANAGER",
        "secretsmanager.GetSecretValue",
        "SecretId",
        ("SecretString",),
        {},
    ),
    "ssm": Service(
        "ssm",
        "AWS_ENDPOINT_URL_SSM",
        "AmazonSSM.GetParameter",
        "Name",
        ("Parameter", "Value"),
        {"WithDecryption": True},
    ),
}


def secret_value(arn: str, imds: Imds | None = None) -> str:
    """The text of a Secrets Manager secret or of a Systems Manager parameter.

    Raises:
        SecretError: AWS refuses the request, or the value is no text.
        OSError: The service is unavailable.
    """
    try:
        service = SERVICES[arn.split(":")[2]]
    except LookupError:
        raise SecretError(f"{arn} is not the ARN of a secret or a parameter") from None
    imds = imds or Imds()
    address = os.environ.get(service.endpoint) or f"https://{service.name}.{region()}.amazonaws.com"
    body = json.dumps({service.name_key: arn, **service.options}).encode()
    headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": service.target}

    def attempt() -> web.Response:
        digest = hashlib.sha256(body).hexdigest()
        url = f"{address.rstrip('/')}/"
        answer = web.send(
            "POST", url, signed_headers(service.name, "POST", url, headers, digest, imds, time.time()), body
        )
        # Both services throttle with status 400, which is final for all other errors.
        is_throttled = answer.status == 400 and b"ThrottlingException" in answer.body
        return answer._replace(status=THROTTLED) if is_throttled else answer

    answer = web.retry(attempt, (200, *_FINAL), imds.retries)
    try:
        value: Any = json.loads(answer.body)
    except ValueError:
        value = {}
    if answer.status != 200:
        code = str(value.get("__type", answer.status)).rpartition("#")[2]
        message = value.get("message") or value.get("Message") or ""
        error = SecretError if answer.status in _FINAL else OSError
        raise error(f"AWS returns no value for {arn}: {code} {message}".rstrip())
    try:
        for key in service.value:
            value = value[key]
    except (LookupError, TypeError):
        value = None
    if not isinstance(value, str):
        raise SecretError(f"{arn} contains no text")
    return value
