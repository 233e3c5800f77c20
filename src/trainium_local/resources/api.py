"""Calls the services of the embedded AWS, with arguments in CloudFormation's spelling."""

import json
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from boto3.session import Session
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.handlers import base64_encode_user_data
from botocore.parsers import ResponseParserError
from moto.core.exceptions import ServiceException
from moto.core.utils import get_service_model

from trainium_local.environment import Connection
from trainium_local.resources import api_constraints
from trainium_local.signatures import SigningCredentials
from trainium_local.tags import tag_values

_connection: list[Connection] = []
lock = threading.Lock()
"""Held during a call: a thread must not change moto's dictionaries while another thread iterates over them."""
_acting: ContextVar[SigningCredentials | None] = ContextVar("acting", default=None)

_GONE = re.compile(r"NotFound|NoSuch|DoesNotExist|NonExist|ResourceNotFound|InvalidAssociationID", re.IGNORECASE)


def connect(connection: Connection) -> None:
    """Send all further calls to this server."""
    _connection[:] = [connection]
    _client.cache_clear()


def connection() -> Connection:
    """Return the address of the embedded AWS, with the owner's credentials."""
    return _connection[0]


def endpoint() -> str:
    """Return the endpoint of the embedded AWS."""
    return _connection[0].endpoint


@contextmanager
def acting_as(credentials: SigningCredentials | None) -> Generator[None]:
    """Make calls with these credentials in this block, and in threads with a copy of its context. None: the owner's."""
    before = _acting.set(credentials)
    try:
        yield
    finally:
        _acting.reset(before)


def acting() -> SigningCredentials | None:
    """Return the credentials of `acting_as`. None means the owner's."""
    return _acting.get()


@cache
def _session(keys: SigningCredentials) -> Session:
    # one session for all clients with the same credentials: each session reads botocore's large tables again
    return Session(keys.access_key_id, keys.secret_access_key, keys.session_token)


def client(service: str, region: str) -> Any:
    """Return a boto3 client of the service. It does not retry, so failures are immediate."""
    return _client(service, region, _acting.get() or _connection[0].credentials)


@cache
def _client(service: str, region: str, credentials: SigningCredentials) -> Any:
    config = Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"})
    api = _session(credentials).client(service, region_name=region, endpoint_url=endpoint(), config=config)
    # templates already contain user data in base64
    api.meta.events.unregister("before-parameter-build.ec2.RunInstances", base64_encode_user_data)
    return api


def argument_names(service: str, operation: str, within: str | None = None) -> set[str]:
    """Return the arguments that a call accepts.

    Args:
        service: Name of the service in boto3.
        operation: Name of the operation, such as CreateVpc.
        within: An argument, whose members are returned instead.
    """
    shape: Any = get_service_model(service).operation_model(operation).input_shape
    return set(shape.members[within].members if within else shape.members)


def call(service: str, operation: str, region: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call an operation, e.g. CreateVpc of ec2.

    Names are matched case-insensitively, values are converted to the API's types, and unknown arguments are omitted.

    Raises:
        ClientError: The service refused the call.
        Refused: An argument violates a constraint of the API model.
    """
    with lock:
        api = client(service, region)
        shape = api.meta.service_model.operation_model(operation).input_shape
        converted = _convert(shape, arguments) if shape else {}
        if shape:
            api_constraints.check(api.meta.service_model, shape, converted)
        return getattr(api, xform_name(operation))(**converted)


def is_missing(error: ClientError) -> bool:
    """Return whether the service answered that the resource does not exist."""
    return bool(_GONE.search(error.response.get("Error", {}).get("Code", "")))


@contextmanager
def ignoring_missing() -> Generator[None]:
    """Ignore errors that `is_missing` recognises."""
    try:
        yield
    except ClientError as error:
        if not is_missing(error):
            raise


def failure_reason(error: Exception) -> str:
    """Return the reason of a failure as an event displays it."""
    if isinstance(error, ResponseParserError):
        return "The embedded AWS failed; its log has the traceback."
    if isinstance(error, LookupError | TypeError | AttributeError | AssertionError):
        return f"The embedded AWS failed: {type(error).__name__}: {error}"
    if isinstance(error, ServiceException):
        return error.message
    if not isinstance(error, ClientError):
        return str(error) or type(error).__name__
    code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", message)).strip()
    return f"{plain} (Service operation: {error.operation_name}, Error code: {code})"


def _convert(shape: Any, value: Any) -> Any:
    kind = shape.type_name
    if kind == "structure":
        if isinstance(value, list) and {"Items", "Quantity"} <= set(shape.members):
            value = {"Items": value, "Quantity": len(value)}
        return _convert_structure(shape, json.loads(value) if isinstance(value, str) else value)
    if kind == "list":
        if isinstance(value, dict) and shape.member.type_name == "structure" and "tag" in shape.member.name.lower():
            value = [{"Key": key, "Value": item} for key, item in value.items()]
        return [_convert(shape.member, item) for item in (value if isinstance(value, list) else [value])]
    if kind == "map":
        return {key: _convert(shape.value, item) for key, item in tag_values(value).items()}
    if kind in ("integer", "long"):
        return int(float(value))
    if kind in ("float", "double"):
        return float(value)
    if kind == "boolean":
        return str(value).lower() == "true"
    if kind == "string":
        return json.dumps(value) if isinstance(value, dict | list | bool) else str(value)
    return value


def _convert_structure(shape: Any, value: dict[str, Any] | list[dict[str, Any]]) -> dict[str, Any]:
    members = {name.lower(): name for name in shape.members}
    structure = value if isinstance(value, dict) else {}
    if "tagkey" in members and "Key" in structure:
        structure = {"TagKey": structure["Key"], "TagValue": structure["Value"]}
    return {
        members[key.lower()]: _convert(shape.members[members[key.lower()]], item)
        for key, item in structure.items()
        if key.lower() in members and item is not None
    }
