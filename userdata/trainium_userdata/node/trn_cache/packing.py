"""An entry as one object: a reproducible tar of its files."""

from __future__ import annotations

import errno
import hashlib
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from trn_node.web import Source

from .layouts import Entry

_LARGEST_HEADER = 64 * 1024
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)

BLOCK = 256 * 1024
"""Block size in bytes, small enough for the processor's cache."""


class PackingError(Exception):
    """A sentence on a problem with a packed entry."""


def pack(entry: Entry, target: Path) -> None:
    """Write an entry's files into a tar. Raises OSError, also if one of them is deleted in the meantime."""
    with tarfile.open(target, "w") as archive:
        for file in entry.files:
            member = tarfile.TarInfo(file.name if file == entry.path else str(file.relative_to(entry.path)))
            member.size = file.stat().st_size
            with file.open("rb") as content:
                archive.addfile(member, content)


class Unpacking:
    """Unpacks the output of `pack` while reading it.

    Args:
        target: The file to write, if the only member of the archive has this name, otherwise the folder to create. The
            parent of the target is emptied first. Nothing is written elsewhere.
        check: Called before each block. Its errors end the reading.

    Attributes:
        problem: Why the data are not a packed entry; empty if they are.
        digest: SHA-256 of the data, in hexadecimal.
    """

    def __init__(self, target: Path, check: Callable[[], object] = lambda: None) -> None:
        self._target, self._check = target, check
        self.problem = self.digest = ""

    def take(self, source: Source) -> int:
        """Read and unpack the whole source. Returns its size. Raises OSError for errors of the disk or the source."""
        shutil.rmtree(self._target.parent)
        self._target.parent.mkdir()
        self.problem = ""
        reading = _Digesting(source, self._check)
        try:
            _unpack(reading, self._target)
        except PackingError as error:
            self.problem = str(error)
        while reading.read_block(BLOCK):
            pass
        self.digest = reading.digest.hexdigest()
        return reading.size


class _Digesting:
    """Reads a source and computes its digest, with one reused block of memory."""

    def __init__(self, source: Source, check: Callable[[], object]) -> None:
        self._source, self._check = source, check
        self._block = memoryview(bytearray(BLOCK))
        self.digest, self.size = hashlib.sha256(), 0

    def read_block(self, size: int) -> memoryview:
        """Up to the given number of bytes, none at the end; valid until the next read."""
        self._check()
        count = self._source.readinto(self._block[: min(size, BLOCK)]) or 0
        block = self._block[:count]
        self.digest.update(block)
        self.size += count
        return block

    def read(self, size: int) -> bytes:
        """The given number of bytes, or fewer at the end. Raises PackingError above _LARGEST_HEADER."""
        if size > _LARGEST_HEADER:
            raise PackingError(f"it has a header of {size} bytes")
        found = b""
        while len(found) < size:
            block = self.read_block(size - len(found))
            if not block:
                break
            found += block
        return found

    def tell(self) -> int:
        return self.size

    def copy(self, size: int, out: BinaryIO) -> None:
        """Copy the given number of bytes. Raises EOFError if fewer are left."""
        while size:
            block = self.read_block(size)
            if not block:
                raise EOFError("it ends too early")
            size -= len(block)
            while block:
                # A nearly full disk may accept only a part.
                block = block[out.write(block) :]


def _create(path: Path, name: str) -> BinaryIO:
    """Open a new file of an entry.

    Raises:
        PackingError: The name is invalid on this disk, or already used.
        OSError: The disk is full or fails.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb", buffering=0)
    except OSError as error:
        if error.errno in _DISK_ERRORS:
            raise
        raise PackingError(f"it holds {name[:80]}, which cannot be written: {error.strerror}") from None


def _unpack(source: _Digesting, target: Path) -> None:
    """Unpack an archive. tarfile reads only the headers, because it would copy each byte of a file four times."""
    file: Any = source
    names = 0
    try:
        archive = tarfile.TarFile(fileobj=file)
        single = False
        for member in iter(archive.next, None):
            name = PurePosixPath(member.name)
            is_plain = member.isfile() and not member.issparse() and member.size >= 0
            if not is_plain or name.is_absolute() or ".." in name.parts or single:
                raise PackingError(f"it holds {member.name}, which is not a file of an entry")
            single = not names and member.name == target.name
            names += 1
            with _create(target if single else target / member.name, member.name) as out:
                source.copy(member.size, out)
            source.read(-member.size % tarfile.BLOCKSIZE)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise PackingError(f"it cannot be read: {error}") from None
    if not names:
        raise PackingError("it holds no file")
