"""An entry as one object: a tar of its files, the same bytes for the same files."""

from __future__ import annotations

import tarfile
from pathlib import Path, PurePosixPath

from .layouts import Entry


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


def unpack(file: Path, target: Path) -> None:
    """What `pack` has written, into a folder, or into the file that the entry is. Nothing is written elsewhere.

    target: with `.neff` or `-cache` in the archive alone and named as target is, the file itself; else a new folder.
    Raises PackingError for what is no packed entry, and OSError when the disk does not take it.
    """
    try:
        with tarfile.open(file, "r:") as archive:
            members = archive.getmembers()
            for member in members:
                name = PurePosixPath(member.name)
                if not member.isfile() or name.is_absolute() or ".." in name.parts:
                    raise PackingError(f"it holds {member.name}, which is no file of an entry")
            single = len(members) == 1 and members[0].name == target.name
            if not members:
                raise PackingError("it holds no file")
            for member in members:
                path = target if single else target / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                content = archive.extractfile(member)
                assert content is not None
                with content, path.open("wb") as out:
                    while True:
                        block = content.read(1024 * 1024)
                        if not block:
                            break
                        out.write(block)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise PackingError(f"it cannot be read: {error}") from None
