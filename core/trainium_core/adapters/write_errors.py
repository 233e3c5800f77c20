"""What becomes of an order that AWS does not take."""

from collections.abc import Generator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from trainium_core.account.teardown import RequestRefusedError
from trainium_runtime.aws_service import DENIED, answered
from trainium_runtime.errors import UnavailableError


@contextmanager
def write_errors(permission: str, *, absent: tuple[str, ...] = ()) -> Generator[None]:
    """Turn what can go wrong into RequestRefusedError, and an error that says `absent` into an end of the block."""
    try:
        yield
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
        if any(sign in f"{code} {message}" for sign in absent):
            return
        if code in DENIED:
            raise RequestRefusedError(f"not allowed: the permission {permission} is missing") from error
        raise RequestRefusedError(answered(code, message)) from error
    except (BotoCoreError, UnavailableError) as error:
        raise RequestRefusedError(str(error)) from error
    except ResponseParserError as error:
        raise RequestRefusedError(f"the answer to {permission} is not AWS's: {str(error).splitlines()[0]}") from error
