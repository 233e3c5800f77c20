"""Errors of boto3, translated: UnavailableError for a call that reads, RequestRefusedError for one that changes."""

from collections.abc import Generator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError

from trainium_runtime.errors import NotSignedInError, RequestRefusedError, UnavailableError

DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "403")
"""403 is the answer to a HEAD request, which has no text."""

WITHOUT_CREDENTIALS = (
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)

_NOT_ADMITTED = (
    "AuthFailure",
    "InvalidClientTokenId",
    "OptInRequired",
    "UnrecognizedClientException",
)
"""What services answer alike to keys that are not valid and to a region that the account has not enabled."""

_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "RequestExpired")

_FAILURES = (ClientError, BotoCoreError, ResponseParserError)


@contextmanager
def read_errors(permission: str, *, absent: tuple[str, ...] = ()) -> Generator[None]:
    """Turn what can go wrong into UnavailableError, and an error that says `absent` into an end of the block."""
    try:
        yield
    except WITHOUT_CREDENTIALS as error:
        raise NotSignedInError(str(error)) from error
    except _FAILURES as error:
        if not _says(error, absent):
            raise UnavailableError(_explanation(error, permission, denied="not allowed to look")) from error
    except LookupError as error:
        raise UnavailableError(f"the answer to {permission} lacks {error}") from error


@contextmanager
def write_errors(permission: str, *, absent: tuple[str, ...] = ()) -> Generator[None]:
    """Turn what can go wrong into RequestRefusedError, and an error that says `absent` into an end of the block."""
    try:
        yield
    except _FAILURES as error:
        if not _says(error, absent):
            raise RequestRefusedError(_explanation(error, permission, denied="not allowed")) from error
    except UnavailableError as error:
        raise RequestRefusedError(str(error)) from error


def error_code(error: BaseException | None) -> str:
    """AWS's code for an error, such as AccessDenied; empty when AWS did not answer."""
    return error.response["Error"]["Code"] if isinstance(error, ClientError) else ""


def _says(error: Exception, signs: tuple[str, ...]) -> bool:
    if not isinstance(error, ClientError):
        return False
    return any(sign in f"{error_code(error)} {error.response['Error'].get('Message', '')}" for sign in signs)


def _explanation(error: Exception, permission: str, *, denied: str) -> str:
    """What an error means to whoever is signed in."""
    if isinstance(error, ResponseParserError):  # such as a proxy's page in place of an answer
        return f"the answer to {permission} is not AWS's: {str(error).splitlines()[0]}"
    if not isinstance(error, ClientError):
        return str(error)
    code, answer = error_code(error), error.response["Error"]
    if code in DENIED:
        return f"{denied}: the permission {permission} is missing"
    text = f"AWS answered {code}: {answer.get('Message', '')}"
    if code in _EXPIRED:
        return f"{text}; sign in again"
    if code in _NOT_ADMITTED:
        return f"{text}; either the credentials are not valid, or the account has not enabled this region"
    return text
