"""What later runs of pytest need not make again: folders, as archives in a folder that may be deleted at any time."""

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

from tests import sources
from tests.shared import made_once

VARIABLE = "TRN_TESTS_KEPT"
"""With the folder of the archives. Without it nothing is kept."""
MOST = 600
"""Archives, of some 200 kB each: those of a few states of the sources."""


def begin(folder: Path) -> None:
    """Keep archives there from now on, in the workers that are started later too."""
    os.environ[VARIABLE] = str(folder)
    last_used = sorted(folder.iterdir(), key=lambda archive: archive.stat().st_mtime, reverse=True)
    for archive in last_used[MOST:]:
        archive.unlink(missing_ok=True)


def synthesised(name: str, make: Callable[[Path], object]) -> Path:
    """The folder that `make` has filled by a synthesis of this repository's constructs, in this run or in an earlier
    one with the same sources and packages. Each run has a copy of its own.

    name: what is asked for, with all that decides it beside sources and packages.
    """
    decided_by = json.dumps([name, sources.of_a_synthesis()])

    def unpack_or_make(folder: Path) -> None:
        if VARIABLE not in os.environ:
            make(folder)
            return
        archive = Path(os.environ[VARIABLE]) / f"{hashlib.sha256(decided_by.encode()).hexdigest()}.tar.gz"
        if not _unpacked(archive, folder):
            make(folder)
            if sources.are_as_at_start():
                _pack(folder, archive)

    return made_once(decided_by, unpack_or_make)


def _unpacked(archive: Path, folder: Path) -> bool:
    try:
        with tarfile.open(archive) as packed:
            packed.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)  # not before Python 3.11.4
            packed.extractall(folder)
        archive.touch()
    except (OSError, tarfile.TarError, EOFError, zlib.error):  # none, or torn
        shutil.rmtree(folder)
        folder.mkdir()
        return False
    return True


def _pack(folder: Path, archive: Path) -> None:
    with (
        tempfile.NamedTemporaryFile(dir=archive.parent, delete=False) as whole,
        tarfile.open(fileobj=whole, mode="w:gz", compresslevel=1) as packed,
    ):
        for one in sorted(folder.iterdir()):
            packed.add(one, one.name)
    Path(whole.name).replace(archive)  # another run may do the same
