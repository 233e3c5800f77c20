"""Waits for permissions of the same deployment, because IAM is eventually consistent."""

import time
from collections.abc import Callable
from typing import TypeVar

from trainium_runtime.log import log

_Result = TypeVar("_Result")

_PAUSE_S = 5.0
_TIMEOUT_S = 60.0
_DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "403")


def retry_until_permitted(action: Callable[[], _Result]) -> _Result:
    """Repeat an action while it is denied, for up to a minute.

    Raises:
        ClientError: The action was still denied after a minute, or failed for another reason.
    """
    from botocore.exceptions import ClientError

    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            return action()
        except ClientError as error:
            if error.response["Error"]["Code"] not in _DENIED or time.monotonic() + _PAUSE_S > deadline:
                raise
            log(f"not permitted yet: {error}")
            time.sleep(_PAUSE_S)
