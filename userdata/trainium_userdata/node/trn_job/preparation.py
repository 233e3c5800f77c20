"""Downloads the source of a job, and waits for services of AWS that are unavailable."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from trn_node.secret_values import SecretError

from . import source
from .launch import Launch
from .outputs import is_refusal
from .results import PAUSE_SECONDS
from .store import Store

Answer = TypeVar("Answer")


def download_source(launch: Launch, store: Store) -> None:
    """Download and unpack the source of the job.

    Raises:
        SourceError: The packed source does not exist, was changed, or is invalid.
        OSError: S3 does not answer or refuses, or the disk fails.
    """
    place = launch.place
    archive = place / "source.tar.gz"
    if not store.download(launch.job_keys.source, archive):
        raise source.SourceError(f"the packed source {launch.url}/{launch.job_keys.source} does not exist")
    promised = launch.spec.source_sha256
    if promised and hashlib.sha256(archive.read_bytes()).hexdigest() != promised:
        raise source.SourceError("the packed source in S3 is not the one that was submitted")
    source.unpack(archive, place / "source")
    archive.unlink()


def patiently(
    request: Callable[[], Answer], patience: float, say: Callable[[str], None], is_cancelled: Callable[[], bool]
) -> Answer:
    """The answer to a request, which is repeated while the service is unavailable.

    Args:
        request: The request. An OSError that is no refusal means that the service is unavailable.
        patience: How many seconds the request is repeated for.
        say: Called with the first error.
        is_cancelled: Whether to stop repeating.

    Raises:
        OSError: The last error of the request.
    """
    until, is_first = time.monotonic() + patience, True
    while True:
        try:
            return request()
        except OSError as error:
            is_final = isinstance(error, SecretError) or is_refusal(error)
            if is_final or is_cancelled() or time.monotonic() > until:
                raise
            if is_first:
                say(f"{error}; retrying for up to {patience / 60:.0f} minutes")
            is_first = False
        time.sleep(PAUSE_SECONDS)


class PatientStore(Store):
    """The same folder, for reading while S3 may be unavailable: requests are then repeated.

    Args:
        store: The folder.
        patience: How many seconds each request is repeated for.
        say: Called with the first error.
        is_cancelled: Whether to stop repeating.
    """

    def __init__(
        self, store: Store, patience: float, say: Callable[[str], None], is_cancelled: Callable[[], bool]
    ) -> None:
        self._store, self._patience, self._is_cancelled = store, patience, is_cancelled
        self._say: Callable[[str], None] | None = say

    def at(self, url: str) -> Store:
        return PatientStore(self._store.at(url), self._patience, self._say_once, self._is_cancelled)

    def keys(self) -> list[str]:
        return self._patiently(self._store.keys)

    def read(self, key: str) -> dict[str, Any] | None:
        return self._patiently(lambda: self._store.read(key))

    def download(self, key: str, file: Path) -> bool:
        return self._patiently(lambda: self._store.download(key, file))

    def _patiently(self, request: Callable[[], Answer]) -> Answer:
        return patiently(request, self._patience, self._say_once, self._is_cancelled)

    def _say_once(self, text: str) -> None:
        say, self._say = self._say, None
        if say:
            say(text)
