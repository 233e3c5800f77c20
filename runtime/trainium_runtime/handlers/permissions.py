"""Waiting for permissions that the same deployment gave: IAM makes them known everywhere only after a while."""

import time
from collections.abc import Callable
from typing import TypeVar

_Done = TypeVar("_Done")

_PAUSE_S = 5.0
_PATIENCE_S = 60.0
_DENIED = ("AccessDenied", "AccessDeniedException", "403")


def retry_until_permitted(do: Callable[[], _Done]) -> _Done:
    """Do something that can be done again, until it is not denied any more. Raises what it raises after a minute."""
    from botocore.exceptions import ClientError

    give_up = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return do()
        except ClientError as error:
            if error.response["Error"]["Code"] not in _DENIED or time.monotonic() + _PAUSE_S > give_up:
                raise
            print(f"not permitted yet: {error}")
            time.sleep(_PAUSE_S)
