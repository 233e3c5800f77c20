"""Splits a user data document as cloud-init does."""

import email
import gzip
from email.message import Message


def parts_of(document: str) -> dict[str, str]:
    """The text of each part by its content type, decompressed."""
    message = email.message_from_string(document)
    assert message.is_multipart()
    assert not message.defects
    return {part.get_content_type(): _text(part) for part in message.walk() if not part.is_multipart()}


def _text(part: "Message[str, str]") -> str:
    payload = part.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return (gzip.decompress(payload) if part.get_content_type() == "application/gzip" else payload).decode()


def script_of(document: str) -> str:
    return parts_of(document)["application/gzip"]
