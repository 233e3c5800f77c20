"""Answers that come back over HTTP: a Lambda function's PUT to its ResponseURL, a signal to a wait condition."""

import json
import queue
import re
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from trainium_local.resources import api
from trainium_local.state.kept import kept

_PATH = "/_trn_local/cloudformation-response/"
_mailboxes: dict[str, queue.Queue[dict[str, Any]]] = kept("mailboxes", {})


def open_mailbox() -> str:
    """The URL of a new mailbox, which takes letters until it is closed."""
    token = uuid.uuid4().hex
    _mailboxes[token] = queue.Queue()
    return f"{api.endpoint()}{_PATH}{token}"


def close_mailbox(url: str) -> None:
    _mailboxes.pop(_token(url), None)


def receive(url: str, seconds: float) -> dict[str, Any] | None:
    """The next letter in an open mailbox, None if none comes within the time."""
    try:
        return _mailboxes[_token(url)].get(timeout=seconds)
    except queue.Empty:
        return None


def expected() -> bool:
    """Whether anybody may wait for a letter."""
    return bool(_mailboxes)


def urls_in(text: str) -> list[str]:
    """The URLs of mailboxes in a text."""
    return re.findall(re.escape(f"{api.endpoint()}{_PATH}") + r"[0-9a-f]{32}", text)


def deliver(url: str, letter: dict[str, Any]) -> bool:
    """Put a letter into the mailbox of a URL or path; False if it is closed."""
    mailbox = _mailboxes.get(_token(url))
    if mailbox is not None:
        mailbox.put(letter)
    return mailbox is not None


def is_open(path: str) -> bool:
    """Whether a path is the URL of a mailbox that waits for letters."""
    return path.startswith(_PATH) and path.removeprefix(_PATH) in _mailboxes


def _token(url: str) -> str:
    return url.rpartition("/")[-1]


Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def middleware(app: Wsgi) -> Wsgi:
    """Take the letters out of the requests to `app`."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = str(environ.get("PATH_INFO", ""))
        if not path.startswith(_PATH):
            return app(environ, start_response)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        try:
            letter = json.loads(body)
        except ValueError:
            letter = None
        taken = isinstance(letter, dict) and deliver(path, letter)
        # refused as S3 does an expired URL
        start_response("200 OK" if taken else "403 Forbidden", [("Content-Length", "0")])
        return [b""]

    return answer
