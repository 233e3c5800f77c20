"""Packs the source directory of a job into one archive. Equal sources have equal archives."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.source_files import SourceFiles, read_file, source_files, source_problem
from trainium_core.problems import nearest


@dataclass(frozen=True, kw_only=True)
class SourcePackage:
    """A packed source directory.

    Attributes:
        script: Path of the script in the directory; empty without a script.
        names: Paths of the packed files, sorted.
        archive: The packed files.
        unpacked_bytes: Size of the packed files.
        left_out: The reasons why files and directories are not packed although training may need them, by path.
    """

    script: str
    names: tuple[str, ...]
    archive: bytes
    unpacked_bytes: int
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def digest(self) -> str:
        """SHA-256 of the archive in hexadecimal."""
        return hashlib.sha256(self.archive).hexdigest()


def pack_source(script: Path, source: Path | None = None, outputs: Path | None = None) -> SourcePackage:
    """Pack a source directory, or only the script.

    Times, owners, the order of files, and folders that training never needs do not affect the archive.

    Args:
        script: Path of the script, relative to the source directory as in SageMaker's SDK, or to the working directory.
        source: The source directory; None: only the script is packed.
        outputs: The folder that outputs are downloaded to, which is not packed.

    Raises:
        JobError: The script or the directory does not exist, the script is not packed, or the files cannot be read or
            are too large.
    """
    if source and (source / script).is_file():
        script = source / script
    if not script.is_file():
        raise JobError([_no_script(script)])
    if source is None:
        name, files = script.name, SourceFiles(files={script.name: script}, left_out={})
    else:
        name, files = _script_and_files(script, source, outputs)
    return _packed(name, files)


def pack_directory(source: Path | None, outputs: Path | None = None) -> SourcePackage:
    """Pack the source directory of a command. Without a directory, the archive is empty.

    The folder that outputs are downloaded to is not packed.

    Raises:
        JobError: The directory does not exist, or its files cannot be read or are too large.
    """
    if source is None:
        return SourcePackage(script="", names=(), archive=_archive({}, {}), unpacked_bytes=0)
    if not source.is_dir():
        raise JobError(
            [source_problem(source, "a directory that exists", "specify the directory of the command's files")]
        )
    return _packed("", source_files(source, outputs))


def _packed(script: str, source: SourceFiles) -> SourcePackage:
    contents = {each: read_file(path) for each, path in source.files.items()}
    return SourcePackage(
        script=script,
        names=tuple(sorted(contents)),
        archive=_archive(contents, source.files),
        unpacked_bytes=sum(len(content) for content in contents.values()),
        left_out=source.left_out,
    )


def _script_and_files(script: Path, folder: Path, outputs: Path | None) -> tuple[str, SourceFiles]:
    if not folder.is_dir():
        raise JobError([source_problem(folder, "a directory that exists", "specify the directory of the script")])
    try:
        name = script.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        fix = f"move the script below {folder}, or specify another --source"
        raise JobError([source_problem(folder, f"a directory that contains {script}", fix)]) from None
    source = source_files(folder, outputs)
    if name not in source.files:
        why = source.left_out.get(name, "files of this kind or in this folder are never packed")
        fix = f"move it: {name} is not packed ({why})"
        raise JobError([JobProblem(key="script", got=str(script), allowed="a file that is packed", fix=fix)])
    return name, source


def _archive(contents: Mapping[str, bytes], files: Mapping[str, Path]) -> bytes:
    # Imported late: many commands import this module, and few of them pack a source.
    import gzip
    import io
    import tarfile

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in sorted(contents.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755 if os.access(files[name], os.X_OK) else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


def _no_script(script: Path) -> JobProblem:
    scripts = [path.name for path in script.parent.glob("*.py")] if script.parent.is_dir() else []
    close = nearest(script.name, scripts)
    fix = f"write {script.parent / close}" if close else "specify the path of the training script"
    return JobProblem(key="script", got=str(script), allowed="a file that exists", nearest=close, fix=fix)
