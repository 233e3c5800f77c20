"""S3's conditional writes, by which nodes decide what must happen once."""

import threading
from contextlib import nullcontext
from typing import Any

_one_at_a_time = threading.Lock()


def put_object(original: Any, response: Any) -> Any:
    """Of two at one moment, S3 refuses one."""
    with _one_at_a_time if response.headers.get("If-None-Match") else nullcontext():
        return original(response)
