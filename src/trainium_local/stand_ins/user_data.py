"""Parses an instance's user data for its stand-in."""

import email
import gzip
from collections.abc import Iterator
from email.message import Message
from typing import Any

_GZIP = b"\x1f\x8b"


def texts(user_data: bytes) -> Iterator[str]:
    """Yield the user data, and each part of a multipart message, as decompressed text."""
    raw = _unzipped(user_data)
    yield raw.decode(errors="replace")
    message: Message = email.message_from_bytes(raw)
    for part in message.walk() if message.is_multipart() else ():
        payload: Any = part.get_payload(decode=True)
        if isinstance(payload, bytes):
            yield _unzipped(payload).decode(errors="replace")


def _unzipped(content: bytes) -> bytes:
    return gzip.decompress(content) if content.startswith(_GZIP) else content
