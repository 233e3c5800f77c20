"""The support archive: its files, and what is missing."""

import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from trainium_runtime.errors import UnavailableError

MANIFEST = "manifest.json"
_AT_ONCE = 8


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the archive.

    Attributes:
        name: Name of the file, or of the folder of several files.
        gather: Returns the text of the file, or texts by file name. Its errors are the reason for a missing part.
    """

    name: str
    gather: Callable[[], str | Mapping[str, str]]


@dataclass(frozen=True, kw_only=True)
class SupportFiles:
    """The content of the archive.

    Attributes:
        files: Texts by file name.
        unavailable: Reasons for missing parts, by the name of the part.
    """

    files: Mapping[str, str]
    unavailable: Mapping[str, str]


def gather(parts: Sequence[Part]) -> SupportFiles:
    """Gather the parts concurrently. An error in one part does not affect the others."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found = list(threads.map(_texts, parts))
    files: dict[str, str] = {}
    unavailable: dict[str, str] = {}
    for part, texts in zip(parts, found, strict=True):
        if isinstance(texts, Exception):
            expected = isinstance(texts, UnavailableError)
            unavailable[part.name] = str(texts) if expected else f"{type(texts).__name__}: {texts}"
        elif isinstance(texts, str):
            files[part.name] = texts
        else:
            files |= {f"{part.name}/{name}": text for name, text in texts.items()}
    return SupportFiles(files=files, unavailable=unavailable)


def write_archive(gathered: SupportFiles, *, folder: str, made: datetime) -> bytes:
    """Write a .tar.gz archive.

    Args:
        gathered: The files.
        folder: The folder in the archive.
        made: Time of the archive, for the manifest and the files.

    Returns:
        The archive, with a manifest of the included files, their sizes in bytes, and the missing parts.
    """
    manifest = {
        "made": made.isoformat(),
        "files": {name: len(text.encode()) for name, text in sorted(gathered.files.items())},
        "unavailable": gathered.unavailable,
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in {MANIFEST: json.dumps(manifest, indent=2) + "\n", **gathered.files}.items():
            content = text.encode()
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), int(made.timestamp()), 0o600
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def _texts(part: Part) -> str | Mapping[str, str] | Exception:
    try:
        return part.gather()
    except Exception as error:
        return error
