"""Translates errors of boto3: UnavailableError for calls that read, RequestRefusedError for calls that change."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    ProxyConnectionError,
    SSLError,
    SSOError,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError

from trainium_runtime.errors import (
    ASK_ORGANIZATION,
    REACH_AWS,
    SIGN_IN_OR_ENABLE,
    TRUST_CERTIFICATE,
    DeniedError,
    NotSignedInError,
    OfflineError,
    RequestRefusedError,
    UnavailableError,
)

DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")

WITHOUT_CREDENTIALS = (
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)

_DENYING_POLICIES = ("service control policy", "resource control policy", "permissions boundary")
"""Policies that a message of IAM names if they deny what the permissions of the caller allow."""

UNREACHED = (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError)

_REJECTED = (
    "AuthFailure",
    "InvalidClientTokenId",
    "OptInRequired",
    "UnrecognizedClientException",
)
"""Error codes both for invalid keys and for a region that is not enabled."""

_FORBIDDEN = 403

_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "RequestExpired")

_FAILURES = (ClientError, BotoCoreError, ResponseParserError)


@contextmanager
def read_errors(permission: str, *, absent: tuple[str, ...] = ()) -> Generator[None]:
    """Turn errors of boto3 into UnavailableError.

    Args:
        permission: The permission that the calls need.
        absent: Texts of errors that end the block silently.
    """
    try:
        yield
    except _FAILURES as error:
        if not _matches(error, absent):
            raise _unavailable(error, permission, denied="not allowed to read") from error
    except LookupError as error:
        raise UnavailableError(f"the response to {permission} lacks {error}") from error


@contextmanager
def write_errors(permission: str, *, absent: tuple[str, ...] = ()) -> Generator[None]:
    """Turn errors of boto3 into RequestRefusedError.

    Args:
        permission: The permission that the calls need.
        absent: Texts of errors that end the block silently.
    """
    try:
        yield
    except _FAILURES as error:
        if not _matches(error, absent):
            raise RequestRefusedError(str(_unavailable(error, permission, denied="not allowed"))) from error
    except UnavailableError as error:
        raise RequestRefusedError(str(error)) from error


def error_code(error: BaseException | None) -> str:
    """AWS's code for an error, such as AccessDenied, or the status of a response without one; empty if unknown."""
    return str(_error_fields(error).get("Code", "")) if isinstance(error, ClientError) else ""


def _error_fields(error: ClientError) -> Mapping[str, Any]:
    """The error in a response; empty if the response is a page that botocore parsed as XML."""
    return error.response.get("Error", {})


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".: ")


def _matches(error: Exception, fragments: tuple[str, ...]) -> bool:
    if not isinstance(error, ClientError):
        return False
    return any(fragment in f"{error_code(error)} {_error_fields(error).get('Message', '')}" for fragment in fragments)


def _unavailable(error: Exception, permission: str, *, denied: str) -> UnavailableError:
    if isinstance(error, WITHOUT_CREDENTIALS):
        return NotSignedInError(str(error))
    if isinstance(error, UNREACHED):
        return OfflineError(_first_line(error))
    if isinstance(error, SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        endpoint = error.kwargs.get("endpoint_url", "AWS")
        return OfflineError(f"the TLS certificate of {endpoint} is not trusted", remedy=TRUST_CERTIFICATE)
    if isinstance(error, ResponseParserError):  # such as a proxy's page in place of a response
        reason = f"the response to {permission} is not from AWS: {str(error).splitlines()[0]}"
        return UnavailableError(reason, remedy=REACH_AWS)
    if not isinstance(error, ClientError):
        return UnavailableError(str(error))
    code, message = error_code(error), _error_fields(error).get("Message", "")
    if not code or code.isdecimal():
        return _without_code(error, permission, denied=denied)
    if code in _EXPIRED:
        return NotSignedInError("the credentials have expired")
    if code in DENIED:
        policy = next((name for name in _DENYING_POLICIES if name in message), None)
        if policy:
            return DeniedError(f"{denied}: a {policy} denies {permission}", remedy=ASK_ORGANIZATION)
        return DeniedError(f"{denied}: the permission {permission} is missing")
    if code in _REJECTED:
        hint = "the credentials are not valid, or this region is not enabled in the account"
        return UnavailableError(f"AWS answered {code}: {message.rstrip('.')}; {hint}", remedy=SIGN_IN_OR_ENABLE)
    return UnavailableError(f"AWS answered {code}: {message}")


def _without_code(error: ClientError, permission: str, *, denied: str) -> UnavailableError:
    """The error for a response that has only a status: S3 answers HEAD requests so, and proxies answer any request."""
    metadata = error.response.get("ResponseMetadata", {})
    status = metadata.get("HTTPStatusCode", error_code(error))
    is_aws = any(name.lower().startswith("x-amz") for name in metadata.get("HTTPHeaders", {}))
    if is_aws and status == _FORBIDDEN:
        return DeniedError(f"{denied}: the permission {permission} is missing, or a policy denies it (status {status})")
    if is_aws:
        return UnavailableError(f"AWS answered {permission} with status {status}")
    return UnavailableError(
        f"the response to {permission} has status {status} and no error code of AWS: it may be from a proxy",
        remedy=REACH_AWS,
    )
