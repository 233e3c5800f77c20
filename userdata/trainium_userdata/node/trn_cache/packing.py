"""An entry as one object: a tar of its files, the same bytes for the same files."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

from trn_node.web import Source

from .layouts import Entry

BLOCK = 1024 * 1024


class PackingError(Exception):
    """What is wrong with a packed entry, in a sentence."""


def pack(entry: Entry, file: Path) -> None:
    """Write an entry's files into a tar. Raises OSError, also when one of them is deleted meanwhile."""
    with tarfile.open(file, "w") as archive:
        for each in entry.files:
            member = tarfile.TarInfo(each.name if each == entry.path else str(each.relative_to(entry.path)))
            member.size = each.stat().st_size
            with each.open("rb") as content:
                archive.addfile(member, content)


class Unpacking:
    """What `pack` has written, unpacked while it is read: into a folder, or into the file that the entry is.

    target: with one member of its own name in the archive the file itself, else a new folder. Nothing is written
    elsewhere. problem: why it is no packed entry, or empty. digest: SHA-256 of what was read, in hexadecimal.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self.problem = self.digest = ""

    def take(self, source: Source) -> int:
        """Raises OSError when the disk does not take it, or the source ends."""
        shutil.rmtree(self._target.parent)
        self._target.parent.mkdir()
        self.problem = ""
        reading = _Digesting(source)
        try:
            _unpack(reading, self._target)
        except PackingError as error:
            self.problem = str(error)
        while reading.read(BLOCK):
            pass
        self.digest = reading.digest.hexdigest()
        return reading.size


class _Digesting:
    """Reads as its source does, and computes the digest of it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.digest, self.size = hashlib.sha256(), 0

    def read(self, size: int = -1, /) -> bytes:
        block = self._source.read(size)
        self.digest.update(block)
        self.size += len(block)
        return block


def _unpack(source: Source, target: Path) -> None:
    file: Any = source
    names = 0
    try:
        with tarfile.open(fileobj=file, mode="r|", bufsize=BLOCK) as archive:
            single = False
            for member in archive:
                name = PurePosixPath(member.name)
                if not member.isfile() or name.is_absolute() or ".." in name.parts or single:
                    raise PackingError(f"it holds {member.name}, which is no file of an entry")
                single = not names and member.name == target.name
                names += 1
                path = target if single else target / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                content = archive.extractfile(member)
                assert content is not None
                with content, path.open("wb", buffering=0) as out:
                    shutil.copyfileobj(content, out, BLOCK)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise PackingError(f"it cannot be read: {error}") from None
    if not names:
        raise PackingError("it holds no file")
