"""Unpacks the source of a job into a folder."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from .file_tree import LinkError, make_links


class SourceError(Exception):
    """The source of a job is missing or invalid, or its setup failed. The message says why."""


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive into a new folder. Raises SourceError if it is invalid, and OSError for errors of the disk."""
    folder.mkdir()
    links: dict[str, str] = {}
    try:
        with tarfile.open(archive, "r:gz") as packed:
            for member in packed:
                name = PurePosixPath(member.name)
                if name.is_absolute() or ".." in name.parts:
                    raise SourceError(f"the packed source holds {member.name}, which is outside its folder")
                path = folder / name
                if member.isdir():
                    path.mkdir(parents=True, exist_ok=True)
                elif member.isfile():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    content = packed.extractfile(member)
                    assert content is not None
                    with content, path.open("wb") as out:
                        shutil.copyfileobj(content, out)
                    path.chmod(0o755 if member.mode & 0o100 else 0o644)
                elif member.issym():
                    links[str(name)] = member.linkname
                else:
                    raise SourceError(
                        f"the packed source holds {member.name}, which is not a file, folder or symbolic link"
                    )
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, ValueError, zlib.error) as error:
        raise SourceError(f"the packed source cannot be read: {error}") from None
    try:
        # Last, so that nothing is written through a link.
        make_links(folder, links)
    except LinkError as error:
        raise SourceError(f"the packed source holds {error}") from None
