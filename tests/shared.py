"""Files that one run of pytest makes once for all of its workers, in a folder that is deleted at its end."""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

VARIABLE = "TRN_TESTS_SHARED"


def begin() -> None:
    """Make the folder; workers that start later find it."""
    os.environ[VARIABLE] = tempfile.mkdtemp(prefix="trn-tests-")


def end() -> None:
    shutil.rmtree(os.environ.pop(VARIABLE), ignore_errors=True)


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """A folder that `make` has filled, in this process or in another worker of the same run.

    Args:
        name: Must include everything that determines the content.
        make: Fills the folder.
    """
    folder = Path(os.environ[VARIABLE]) / hashlib.sha256(name.encode()).hexdigest()[:32]
    complete = folder.with_suffix(".complete")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            complete.touch()
    return folder
