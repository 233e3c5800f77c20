"""The source directory of a training job as one file: the same bytes, and the same name, for the same source."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainium_core.problems import nearest
from trainium_core.sagemaker.problems import JobError, JobProblem

SOURCE_CHANNEL = "code"
"""Channel of the packed source and the container entry; SageMaker puts it below /opt/ml/input/data."""

SOURCE_FILE = "source.tar.gz"
ENTRY_FILE = "container_entry.py"

IGNORED_FOLDERS = frozenset({".git", ".hg", ".svn", "__pycache__", ".venv", "venv", "node_modules", "cdk.out"})
IGNORED_FOLDERS_LIKE = (".venv-", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".ipynb_checkpoints")
IGNORED_SUFFIXES = (".pyc", ".pyo")

_DIGEST_CHARACTERS = 16


@dataclass(frozen=True, kw_only=True)
class SourcePackage:
    """A packed source directory. `script`: path of the script in it; `names`: of the files in it, sorted."""

    script: str
    names: tuple[str, ...]
    archive: bytes
    unpacked_bytes: int

    @property
    def digest(self) -> str:
        """Begin of the SHA-256 digest of all files: names the folder, so that equal sources are uploaded once."""
        digest = hashlib.sha256()
        for name, content in self.files.items():
            digest.update(f"{name} {len(content)}\n".encode() + content)
        return digest.hexdigest()[:_DIGEST_CHARACTERS]

    @property
    def files(self) -> dict[str, bytes]:
        """What the source channel holds, by name: the archive and our container entry."""
        return {SOURCE_FILE: self.archive, ENTRY_FILE: container_entry()}


def container_entry() -> bytes:
    """The program that the container starts."""
    return Path(__file__).with_name(ENTRY_FILE).read_bytes()


def pack_source(script: Path, source: Path | None = None) -> SourcePackage:
    """Pack a source directory; default the script's own, and then the script alone is packed.

    Times, owners and the order of files do not count, nor do folders that no training needs (IGNORED_FOLDERS).
    Raises JobError when the script or the directory is not there, or the script is outside of it.
    """
    if not script.is_file():
        raise JobError([_no_script(script)])
    folder = source or script.parent
    if not folder.is_dir():
        raise JobError([_problem("--source", folder, "a directory that exists", "give the directory of the script")])
    try:
        name = script.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        fix = f"move the script below {folder}, or give another --source"
        raise JobError([_problem("--source", folder, f"a directory that holds {script}", fix)]) from None
    files = dict(_files(folder)) if source else {name: script}
    archive = _archive(files)
    size = sum(path.stat().st_size for path in files.values())
    return SourcePackage(script=name, names=tuple(sorted(files)), archive=archive, unpacked_bytes=size)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not _is_ignored(name)]
        for file in files:
            path = Path(place, file)
            if not file.endswith(IGNORED_SUFFIXES) and path.is_file():
                yield path.relative_to(folder).as_posix(), path


def _is_ignored(folder: str) -> bool:
    return folder in IGNORED_FOLDERS or folder.startswith(IGNORED_FOLDERS_LIKE)


def _archive(files: dict[str, Path]) -> bytes:
    # Every plan imports this package, and few pack anything.
    import gzip
    import io
    import tarfile

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            content = files[name].read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755 if os.access(files[name], os.X_OK) else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


def _no_script(script: Path) -> JobProblem:
    beside = [path.name for path in script.parent.glob("*.py")] if script.parent.is_dir() else []
    close = nearest(script.name, beside)
    fix = f"write {script.parent / close}" if close else "give the path of the training script"
    return JobProblem(key="--script", got=str(script), allowed="a file that exists", nearest=close, fix=fix)


def _problem(key: str, got: Path, allowed: str, fix: str) -> JobProblem:
    return JobProblem(key=key, got=str(PurePosixPath(got)), allowed=allowed, fix=fix)
