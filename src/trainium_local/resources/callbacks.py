"""The responses of custom resources: a Lambda function sends them in a PUT request to the ResponseURL of its event."""

import queue
import uuid
from typing import Any

from werkzeug.wrappers import Request, Response

from trainium_local.resources import api

_MAX_BYTES = 4096
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html"""
PATH = "/_trn_local/cloudformation-response"
_mailboxes: dict[str, queue.Queue[dict[str, Any]]] = {}


def open_mailbox() -> str:
    """Return the URL of a new mailbox. It accepts messages until it is closed."""
    token = uuid.uuid4().hex
    _mailboxes[token] = queue.Queue()
    return f"{api.endpoint()}{PATH}/{token}"


def close_mailbox(url: str) -> None:
    _mailboxes.pop(_token(url), None)


def receive(url: str, seconds: float) -> dict[str, Any] | None:
    """Return the next message in an open mailbox, or None after the timeout."""
    try:
        return _mailboxes[_token(url)].get(timeout=seconds)
    except queue.Empty:
        return None


def is_open(path: str) -> bool:
    """Return whether a path is the URL of an open mailbox."""
    return path.startswith(f"{PATH}/") and path.removeprefix(f"{PATH}/") in _mailboxes


def _token(url: str) -> str:
    return url.rpartition("/")[-1]


def answer(request: Request) -> Response:
    """Accept a message that is PUT to a mailbox. A closed mailbox refuses it, as S3 does for an expired URL."""
    message, mailbox = request.get_json(force=True, silent=True), _mailboxes.get(_token(request.path))
    if mailbox is None or not isinstance(message, dict):
        return Response(status=403)
    too_long = len(request.get_data()) > _MAX_BYTES
    mailbox.put({"Status": "FAILED", "Reason": "Response object is too long."} if too_long else message)
    return Response(status=200)
