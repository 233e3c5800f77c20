"""Answers that come back over HTTP: a Lambda function's PUT to its ResponseURL."""

import queue
import uuid
from typing import Any

from werkzeug.wrappers import Request, Response

from trainium_local.resources import api

PATH = "/_trn_local/cloudformation-response"
_mailboxes: dict[str, queue.Queue[dict[str, Any]]] = {}


def open_mailbox() -> str:
    """The URL of a new mailbox, which takes letters until it is closed."""
    token = uuid.uuid4().hex
    _mailboxes[token] = queue.Queue()
    return f"{api.endpoint()}{PATH}/{token}"


def close_mailbox(url: str) -> None:
    _mailboxes.pop(_token(url), None)


def receive(url: str, seconds: float) -> dict[str, Any] | None:
    """The next letter in an open mailbox, None if none comes within the time."""
    try:
        return _mailboxes[_token(url)].get(timeout=seconds)
    except queue.Empty:
        return None


def is_open(path: str) -> bool:
    """Whether a path is the URL of a mailbox that waits for letters."""
    return path.startswith(f"{PATH}/") and path.removeprefix(f"{PATH}/") in _mailboxes


def _token(url: str) -> str:
    return url.rpartition("/")[-1]


def answer(request: Request) -> Response:
    """Take the letter that is PUT to the URL of a mailbox; a closed one refuses it, as S3 does an expired URL."""
    letter, mailbox = request.get_json(force=True, silent=True), _mailboxes.get(_token(request.path))
    if mailbox is None or not isinstance(letter, dict):
        return Response(status=403)
    mailbox.put(letter)
    return Response(status=200)
