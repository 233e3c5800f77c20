"""Unpacks the source of a job into a folder."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath


class SourceError(Exception):
    """The source of a job is missing or invalid, or its setup failed. The message says why."""


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive into a new folder. Raises SourceError if it is invalid, and OSError for errors of the disk."""
    folder.mkdir()
    links: list[tuple[Path, str]] = []
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
                    links.append((path, member.linkname))
                else:
                    raise SourceError(
                        f"the packed source holds {member.name}, which is not a file, folder or symbolic link"
                    )
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, ValueError, zlib.error) as error:
        raise SourceError(f"the packed source cannot be read: {error}") from None
    # Last, so that nothing is written through a link.
    for path, target in links:
        inside = os.path.normpath(os.path.join(path.parent, target))  # noqa: PTH118
        if os.path.isabs(target) or not inside.startswith(f"{folder}{os.sep}"):  # noqa: PTH117
            raise SourceError(
                f"the packed source holds a link {path.relative_to(folder)} to {target}, outside its folder"
            )
        name = path.relative_to(folder)
        if any(parent.is_symlink() for parent in path.parents):
            raise SourceError(f"the packed source holds {name}, which is below a link")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
    # A target whose path is inside the folder may be outside it through another link.
    real = os.path.realpath(folder)
    for path, target in links:
        if not os.path.realpath(path).startswith(f"{real}{os.sep}"):
            raise SourceError(
                f"the packed source holds a link {path.relative_to(folder)} to {target}, outside its folder"
            )
