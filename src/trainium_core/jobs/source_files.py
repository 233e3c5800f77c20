"""Selects the files of a directory for a job, and reports the files that are left out."""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import BinaryIO, NoReturn

from trainium_core.jobs.problems import JobError, JobProblem

LARGEST_SOURCE_MIB = 256
"""Maximum size of a source directory. The archive is built in memory, and copied to every instance at every start."""

IGNORED_FOLDERS = frozenset({".git", ".hg", ".svn", "__pycache__", ".venv", "venv", "node_modules", "cdk.out"})
IGNORED_FOLDERS_LIKE = (".venv-", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".ipynb_checkpoints")
IGNORED_SUFFIXES = (".pyc", ".pyo")

SECRET_FOLDERS = frozenset({".aws", ".gnupg", ".kube", ".ssh"})
SECRET_FILES = (
    *(".env", ".env.*", ".envrc", ".git-credentials", ".netrc", ".npmrc", ".pypirc", "id_dsa", "id_ecdsa"),
    *("id_ed25519", "id_rsa", "*.p12", "*.pem", "*.pfx"),
)
"""Names of files that may contain keys or passwords. Everyone with access to the bucket can read an uploaded file."""

INPUT = "--input"
"""The option of local inputs."""

_SOURCE = "--source"
_SECRET = "may contain a secret"
_MIB = 2**20
_SHOWN_FILES = 3


@dataclass(frozen=True, kw_only=True)
class SourceFiles:
    """The files of a directory. Files that training never needs, such as `.git` and `__pycache__`, are not listed.

    Attributes:
        files: The selected files, by path in the directory.
        left_out: The reasons why other files and directories are left out, by path in the directory.
    """

    files: Mapping[str, Path]
    left_out: Mapping[str, str]


def source_files(folder: Path) -> SourceFiles:
    """The files of a source directory.

    Raises:
        JobError: A file cannot be read, or the files are larger than LARGEST_SOURCE_MIB.
    """
    source = files_below(folder)
    _check_size(folder, source.files)
    return source


def files_below(folder: Path, *, option: str = _SOURCE) -> SourceFiles:
    """The files below a directory. Links to files are followed, links to directories are not.

    Args:
        folder: The directory.
        option: The option that names the directory, for messages.

    Raises:
        JobError: A file cannot be read.
    """
    files: dict[str, Path] = {}
    left_out: dict[str, str] = {}
    for path, why in _candidates(folder, option):
        name = path.relative_to(folder).as_posix()
        if why is None:
            files[name] = path
        else:
            left_out[name] = why
    return SourceFiles(files=files, left_out=left_out)


def read_file(path: Path) -> bytes:
    """The content of a file.

    Raises:
        JobError: The file cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        _refuse(_SOURCE, error)


def open_input(path: Path) -> BinaryIO:
    """Open a local input.

    Raises:
        JobError: The file cannot be read.
    """
    try:
        return path.open("rb")
    except OSError as error:
        _refuse(INPUT, error)


def _candidates(folder: Path, option: str) -> Iterator[tuple[Path, str | None]]:
    """Each file, with the reason if it is left out, and each directory that is left out."""
    for directory, folders, files in os.walk(folder, onerror=partial(_refuse, option)):
        entered: list[str] = []
        for name in sorted(folders):
            path = Path(directory, name)
            if name in SECRET_FOLDERS:
                yield path, _SECRET
            elif not _is_ignored(name) and path.is_symlink():
                yield path, "a link to a directory"
            elif not _is_ignored(name):
                entered.append(name)
        folders[:] = entered
        for name in sorted(files):
            path = Path(directory, name)
            if not name.endswith(IGNORED_SUFFIXES):
                yield path, _SECRET if _is_secret(name) or _leads_to_secret(path) else _why_not_a_file(path, option)


def _is_ignored(folder: str) -> bool:
    return folder in IGNORED_FOLDERS or folder.startswith(IGNORED_FOLDERS_LIKE)


def _is_secret(file: str) -> bool:
    return any(fnmatchcase(file, pattern) for pattern in SECRET_FILES)


def _leads_to_secret(path: Path) -> bool:
    """Whether the path is a link to a file that may contain a secret."""
    if not path.is_symlink():
        return False
    target = path.resolve()
    return _is_secret(target.name) or not SECRET_FOLDERS.isdisjoint(target.parts)


def _why_not_a_file(path: Path, option: str) -> str | None:
    try:
        return None if stat.S_ISREG(path.stat().st_mode) else "not a regular file"
    except FileNotFoundError:
        return "a broken link"
    except OSError as error:
        _refuse(option, error)


def _check_size(folder: Path, files: Mapping[str, Path]) -> None:
    sizes = {name: path.stat().st_size for name, path in files.items()}
    total = sum(sizes.values())
    if total <= LARGEST_SOURCE_MIB * _MIB:
        return
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:_SHOWN_FILES]
    listed = ", ".join(f"{name} ({_mib(sizes[name])})" for name in largest)
    allowed = f"up to {LARGEST_SOURCE_MIB} MiB: all of it is copied to every instance"
    fix = f"keep data in S3 and name it with --input; the largest files are {listed}"
    raise JobError([source_problem(f"{folder}, {_mib(total)}", allowed, fix)])


def _mib(size: int) -> str:
    return f"{size / _MIB:,.0f} MiB"


def _refuse(option: str, error: OSError) -> NoReturn:
    got, fix = str(error.filename), f"it cannot be read ({error.strerror}): make it readable, or leave it out"
    raise JobError([JobProblem(key=option, got=got, allowed="files that can be read", fix=fix)]) from error


def source_problem(got: Path | str, allowed: str, fix: str) -> JobProblem:
    return JobProblem(key=_SOURCE, got=str(got), allowed=allowed, fix=fix)
