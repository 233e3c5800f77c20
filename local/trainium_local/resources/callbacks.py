"""Answers that come back over HTTP: a Lambda function's PUT to its ResponseURL, a signal to a wait condition."""

from __future__ import annotations

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


class Mailbox:
    """A URL, and what was PUT to it. Use as a context manager: the URL is good for as long."""

    def __init__(self) -> None:
        self._token = uuid.uuid4().hex
        self._letters: queue.Queue[dict[str, Any]] = queue.Queue()

    @property
    def url(self) -> str:
        return f"{api.endpoint()}{_PATH}{self._token}"

    def open(self) -> None:
        _mailboxes[self._token] = self._letters

    def close(self) -> None:
        _mailboxes.pop(self._token, None)

    def __enter__(self) -> Mailbox:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def receive(self, seconds: float) -> dict[str, Any] | None:
        """The next letter, None if none comes within the time."""
        try:
            return self._letters.get(timeout=seconds)
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
    mailbox = _mailboxes.get(url.rpartition("/")[-1])
    if mailbox is not None:
        mailbox.put(letter)
    return mailbox is not None


def is_open(path: str) -> bool:
    """Whether a path is the URL of a mailbox that waits for letters."""
    return path.startswith(_PATH) and path.removeprefix(_PATH) in _mailboxes


Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def middleware(app: Wsgi) -> Wsgi:
    """Take the letters out of the requests to `app`."""

    def receive(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = str(environ.get("PATH_INFO", ""))
        if not path.startswith(_PATH):
            return app(environ, start_response)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        try:
            letter = json.loads(body)
        except ValueError:
            letter = None
        if not isinstance(letter, dict) or not deliver(path, letter):
            start_response("403 Forbidden", [("Content-Length", "0")])  # S3's answer to an expired URL
            return [b""]
        start_response("200 OK", [("Content-Length", "0")])
        return [b""]

    return receive
