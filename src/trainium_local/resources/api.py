"""Calls to the services of the embedded AWS, with arguments in CloudFormation's spelling."""

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

from trainium_local.environment import Connection
from trainium_local.resources import api_constraints
from trainium_local.signatures import Credentials
from trainium_local.tags import tag_values

_connection: list[Connection] = []
_lock = threading.Lock()
_acting: ContextVar[Credentials | None] = ContextVar("acting", default=None)

_GONE = re.compile(r"NotFound|NoSuch|DoesNotExist|NonExist|ResourceNotFound|InvalidAssociationID", re.IGNORECASE)


def one_at_a_time() -> threading.Lock:
    """A lock: moto's dictionaries must not change while another thread iterates over them."""
    return _lock


def connect(connection: Connection) -> None:
    """Send all further calls there."""
    _connection[:] = [connection]
    _client.cache_clear()


def connection() -> Connection:
    """Where the embedded AWS listens, with the credentials of its owner."""
    return _connection[0]


def endpoint() -> str:
    """Where the embedded AWS listens."""
    return _connection[0].endpoint


@contextmanager
def acting_as(credentials: Credentials | None) -> Generator[None]:
    """Make calls with these credentials meanwhile, not with the owner's. Threads do so that run in a copied context."""
    before = _acting.set(credentials)
    try:
        yield
    finally:
        _acting.reset(before)


def acting() -> Credentials | None:
    """The credentials of `acting_as`; None for the owner's."""
    return _acting.get()


@cache
def _session(keys: Credentials) -> Session:
    # one for all clients: each session reads botocore's large tables anew
    return Session(keys.access_key_id, keys.secret_access_key, keys.session_token)


def client(service: str, region: str) -> Any:
    """A boto3 client of the service on the embedded AWS. No retries: a failure is a failure at once."""
    return _client(service, region, _acting.get() or _connection[0].credentials)


@cache
def _client(service: str, region: str, credentials: Credentials) -> Any:
    config = Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"})
    api = _session(credentials).client(service, region_name=region, endpoint_url=endpoint(), config=config)
    for operation in ("ec2.RunInstances", "autoscaling.CreateLaunchConfiguration"):
        # templates give user data in base64 already
        api.meta.events.unregister(f"before-parameter-build.{operation}", base64_encode_user_data)
    return api


def argument_names(service: str, operation: str, region: str, within: str | None = None) -> set[str]:
    """The arguments that a call takes, or those `within` one of them."""
    shape = client(service, region).meta.service_model.operation_model(operation).input_shape
    return set(shape.members[within].members if within else shape.members)


def call(service: str, operation: str, region: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call e.g. CreateVpc of ec2; names are matched without regard to case, values brought into the API's types.

    Raises botocore's ClientError with the service's own words.
    """
    with one_at_a_time():
        api = client(service, region)
        shape = api.meta.service_model.operation_model(operation).input_shape
        given = _convert(shape, arguments) if shape else {}
        if shape:
            api_constraints.check(api.meta.service_model, shape, given)
        return getattr(api, xform_name(operation))(**given)


def says_gone(error: ClientError) -> bool:
    """Whether the service answered that the thing does not exist (any more)."""
    return bool(_GONE.search(error.response.get("Error", {}).get("Code", "")))


@contextmanager
def gone_is_fine() -> Generator[None]:
    """Ignore that the service answers what `says_gone` recognises."""
    try:
        yield
    except ClientError as error:
        if not says_gone(error):
            raise


def words(error: Exception) -> str:
    """The reason of a failure as an event shows it."""
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
    given = value if isinstance(value, dict) else {}
    if "tagkey" in members and "Key" in given:
        given = {"TagKey": given["Key"], "TagValue": given["Value"]}
    return {
        members[key.lower()]: _convert(shape.members[members[key.lower()]], item)
        for key, item in given.items()
        if key.lower() in members and item is not None
    }
