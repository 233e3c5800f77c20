"""Selects the files of a directory for a job, and reports the files that are left out."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from trainium_core.jobs.problems import JobError, JobProblem

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

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
_SHOWN_LEFT_OUT = 10


@dataclass(frozen=True, kw_only=True)
class SourceFiles:
    """The files of a directory. Files that training never needs, such as `.git` and `__pycache__`, are not listed.

    Attributes:
        files: The selected files, by path in the directory.
        left_out: The reasons why other files and directories are left out, by path in the directory.
    """

    files: Mapping[str, Path]
    left_out: Mapping[str, str]


def left_out_text(left_out: Mapping[str, str]) -> str:
    """The files that are left out, grouped by reason, at most _SHOWN_LEFT_OUT of each."""
    groups: dict[str, list[str]] = {}
    for name, why in sorted(left_out.items()):
        groups.setdefault(why, []).append(name)
    return "; ".join(f"{_listed(names)} ({why})" for why, names in groups.items())


def source_files(folder: Path, outputs: Path | None = None) -> SourceFiles:
    """The files of a source directory, without those that its ignore files name.

    Args:
        folder: The directory.
        outputs: The folder that outputs are downloaded to.

    Raises:
        JobError: A file or an ignore file cannot be read, a link leaves the directory, or the files are larger than
            LARGEST_SOURCE_MIB.
    """
    ignored = _IgnoreFiles(folder)
    of_earlier_jobs = outputs.resolve() if outputs else None

    def why_ignored(path: Path) -> str | None:
        if of_earlier_jobs and path.resolve() == of_earlier_jobs:
            return "outputs of earlier jobs"
        return ignored.name if ignored.match(path) else None

    source = _files_below(folder, _SOURCE, why_ignored)
    _check_size(folder, source.files)
    return source


def input_files(folder: Path) -> SourceFiles:
    """The files below a directory that is an input.

    Raises:
        JobError: A file cannot be read, a link leaves the directory, or a name is not UTF-8, as keys of S3 are.
    """
    found = _files_below(folder, INPUT, lambda _path: None)
    for name in found.files:
        if (shown := os.fsencode(name).decode(errors="backslashreplace")) != name:
            got, fix = f"{folder}/{shown}", "rename it, or pack the folder into an archive"
            raise JobError([JobProblem(key=INPUT, got=got, allowed="files whose names are UTF-8", fix=fix)])
    return found


class _IgnoreFiles:
    """The patterns of `.trnignore` if the directory has one, otherwise of `.gitignore`, also in subdirectories.

    Raises:
        JobError: A file cannot be read, or has an invalid pattern.
    """

    def __init__(self, folder: Path) -> None:
        self.name = ".trnignore" if (folder / ".trnignore").is_file() else ".gitignore"
        self._patterns: dict[Path, GitIgnoreSpec | None] = {}
        self._folder = folder

    def match(self, path: Path) -> bool:
        """Whether the last pattern that matches excludes the path. Deeper files take precedence, as in Git."""
        slash = "/" if path.is_dir() and not path.is_symlink() else ""
        for directory in path.parents:
            patterns = self._read(directory)
            name = f"{path.relative_to(directory).as_posix()}{slash}"
            found = patterns.check_file(name).include if patterns else None
            if found is not None:
                return found
            if directory == self._folder:
                break
        return False

    def _read(self, directory: Path) -> "GitIgnoreSpec | None":
        if directory not in self._patterns:
            self._patterns[directory] = self._parsed(directory / self.name)
        return self._patterns[directory]

    def _parsed(self, file: Path) -> "GitIgnoreSpec | None":
        # Imported late: many commands import this module, and few of them pack a source.
        from pathspec import GitIgnoreSpec

        if not file.is_file():
            return None
        try:
            return GitIgnoreSpec.from_lines(file.read_text(encoding="utf-8", errors="replace").splitlines())
        except OSError as error:
            _refuse(_SOURCE, error)
        except ValueError as error:
            problem = source_problem(file, "patterns of gitignore", f"correct the file: {error}")
            raise JobError([problem]) from error


def _files_below(folder: Path, option: str, why_ignored: Callable[[Path], str | None]) -> SourceFiles:
    files: dict[str, Path] = {}
    left_out: dict[str, str] = {}
    links: dict[str, Path] = {}
    for path, why in _candidates(folder, option, why_ignored):
        name = path.relative_to(folder).as_posix()
        if why:
            left_out[name] = why
        elif path.is_symlink():
            links[name] = path
        elif reason := _why_not_a_file(path, option):
            left_out[name] = reason
        else:
            files[name] = path
    linked, not_followed = _followed(folder, option, links, files)
    return SourceFiles(files={**files, **linked}, left_out={**left_out, **not_followed})


def _followed(
    folder: Path, option: str, links: Mapping[str, Path], files: Mapping[str, Path]
) -> tuple[Mapping[str, Path], Mapping[str, str]]:
    """The links to selected files, and the reasons why other links are left out.

    Raises:
        JobError: Links leave the directory: users who can read the bucket could read files of this machine.
    """
    root = folder.resolve()
    targets = {name: path.resolve() for name, path in links.items()}
    leaving = [name for name, target in targets.items() if not target.is_relative_to(root)]
    if leaving:
        fix = "replace each link with a copy of its target, or remove it"
        if option == _SOURCE:
            fix = "replace each link with a copy of its target, or list it in .trnignore"
        got, allowed = _listed([f"{name} -> {targets[name]}" for name in leaving]), f"links that end inside {folder}"
        raise JobError([JobProblem(key=option, got=got, allowed=allowed, fix=fix)])
    kept: dict[str, Path] = {}
    left_out: dict[str, str] = {}
    for name, target in targets.items():
        if target.is_dir():
            left_out[name] = "a link to a directory"
        elif not target.exists():
            left_out[name] = "a broken link"
        elif target.relative_to(root).as_posix() in files:
            kept[name] = links[name]
        else:
            left_out[name] = "a link to a file that is left out"
    return kept, left_out


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_LEFT_OUT
    return ", ".join([*names[:_SHOWN_LEFT_OUT], *([f"{more} more"] if more > 0 else [])])


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


def _candidates(
    folder: Path, option: str, why_ignored: Callable[[Path], str | None]
) -> Iterator[tuple[Path, str | None]]:
    """Each file and each link, with the reason if it is left out, and each directory that is left out."""
    for directory, folders, files in os.walk(folder, onerror=partial(_refuse, option)):
        entered: list[str] = []
        for name in sorted(folders):
            path = Path(directory, name)
            if _is_never_needed(name):
                continue
            why = _SECRET if name in SECRET_FOLDERS else why_ignored(path)
            if why or path.is_symlink():
                yield path, why
            else:
                entered.append(name)
        folders[:] = entered
        for name in sorted(files):
            if not name.endswith(IGNORED_SUFFIXES):
                path = Path(directory, name)
                yield path, _SECRET if _is_secret(name) else why_ignored(path)


def _is_never_needed(folder: str) -> bool:
    return folder in IGNORED_FOLDERS or folder.startswith(IGNORED_FOLDERS_LIKE)


def _is_secret(file: str) -> bool:
    return any(fnmatchcase(file, pattern) for pattern in SECRET_FILES)


def _why_not_a_file(path: Path, option: str) -> str | None:
    try:
        return None if stat.S_ISREG(path.lstat().st_mode) else "not a regular file"
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
    got, fix = str(error.filename), f"it cannot be read ({error.strerror}): make it readable, or exclude it"
    raise JobError([JobProblem(key=option, got=got, allowed="files that can be read", fix=fix)]) from error


def source_problem(got: Path | str, allowed: str, fix: str) -> JobProblem:
    return JobProblem(key=_SOURCE, got=str(got), allowed=allowed, fix=fix)
