"""Downloads the inputs of a job on each node before its setup."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from .store import Store

READERS = 8
"""Parallel downloads, because many small files are limited by latency."""


class InputError(Exception):
    """A sentence on a problem with an input."""


def download(inputs: Mapping[str, str], store: Store, folder: Path) -> None:
    """Download each input to a path with its name.

    Args:
        inputs: S3 URLs by name. A URL that ends with / is that of a folder; any other is that of a file.
        store: Any folder in S3.
        folder: The folder of the inputs, which is created.

    Raises:
        InputError: An input does not exist, is deleted in the meantime, or has a path outside its folder or
            that of another.
        OSError: S3 does not answer or refuses, or the disk fails.
    """
    folder.mkdir()
    for name, url in inputs.items():
        if url.endswith("/"):
            _download_folder(name, url, store, folder / name)
        else:
            parent, _, key = url.rpartition("/")
            if not store.at(parent).download(key, folder / name):
                raise InputError(f"the input {name}: {url} does not exist; a folder's URL ends with /")


def _download_folder(name: str, url: str, store: Store, folder: Path) -> None:
    source = store.at(url)
    keys = [key for key in source.keys() if not key.endswith("/")]  # noqa: SIM118
    if not keys:
        raise InputError(f"the input {name}: there is nothing below {url}")
    for key in keys:
        if ".." in PurePosixPath(key).parts or PurePosixPath(key).is_absolute():
            raise InputError(f"the input {name}: {url}{key} would be outside its folder")
    by_path: dict[PurePosixPath, str] = {}
    for key in keys:
        # Such as a//b and a/b.
        if by_path.setdefault(PurePosixPath(key), key) != key:
            other = by_path[PurePosixPath(key)]
            raise InputError(f"the input {name}: {url}{key} and {url}{other} would be the same file")

    def fetch(key: str) -> bool:
        return source.download(key, folder / key)

    with ThreadPoolExecutor(READERS) as readers:
        found = list(readers.map(fetch, keys))
    if not all(found):
        raise InputError(f"the input {name}: {url}{keys[found.index(False)]} was deleted in the meantime")
