"""Checkpoints on their way to S3 and back. One without a manifest, which is written last, does not exist."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from trainium_wire.formats import now_text
from trainium_wire.job_keys import job_keys
from trn_node.objects import sha256_of

from .launch import Launch
from .store import Store


class CheckpointError(Exception):
    """Why the job cannot go on from a checkpoint, in a sentence."""


class Checkpoints:
    """Uploads what node 0 has completed in the job's checkpoint folder."""

    def __init__(self, launch: Launch, store: Store, folder: Path) -> None:
        self._launch, self._store, self._folder = launch, store, folder
        self._kept = store.at(launch.checkpoints_url)
        self._known: dict[str, tuple[tuple[str, int, int], ...]] = {}
        self._versions: dict[str, int] = {}
        self._uploading = threading.Lock()

    @property
    def unwanted(self) -> bool:
        """Whether this is another node than 0, and has checkpoints, which are not kept."""
        return bool(self._launch.rank and self._complete_paths())

    def upload(self) -> None:
        """What is new, the oldest first. Raises OSError; the next call goes on."""
        if self._launch.rank:
            return
        with self._uploading:
            for path in self._complete_paths():
                before = signature(path)
                if before and before != self._known.get(path.name):
                    self._upload(path, before)

    def _complete_paths(self) -> list[Path]:
        """By the time at which they were saved. Scripts rename a checkpoint into place when it is whole."""
        found = [
            path for path in self._folder.iterdir() if not path.name.startswith(".") and not path.name.endswith(".tmp")
        ]
        return sorted(found, key=lambda path: max((entry[2] for entry in signature(path)), default=0))

    def _upload(self, path: Path, before: tuple[tuple[str, int, int], ...]) -> None:
        version = self._versions.get(path.name, 0) + 1
        # What is saved again under the same name must not change what an earlier manifest promises.
        name = path.name if version == 1 else f"{path.name}.{version}"
        stored: dict[str, Any] = {}
        try:
            for relative, size, _ in before:
                file = path / relative if relative else path
                digest = sha256_of(file)
                stored[relative or path.name] = {"size": size, "sha256": digest}
                self._kept.upload(self._launch.job_keys.checkpoint_file(name, relative or path.name), file, digest)
        except FileNotFoundError:
            # The script deleted it meanwhile.
            return
        if signature(path) != before:
            return
        manifest = {
            "name": name,
            "saved_as": path.name,
            "is_file": path.is_file(),
            "at": now_text(),
            "world_size": self._launch.world_size,
            "files": stored,
        }
        self._kept.write(self._launch.job_keys.checkpoint(name), manifest)
        self._known[path.name], self._versions[path.name] = before, version


def signature(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Names, sizes and times of its files; empty when it is gone."""
    try:
        if path.is_file():
            stat = path.stat()
            return (("", stat.st_size, stat.st_mtime_ns),)
        files = sorted(file for file in path.rglob("*") if file.is_file() and not file.is_symlink())
        stats = [(str(file.relative_to(path)), file.stat()) for file in files]
        return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
    except FileNotFoundError:
        return ()


def download(launch: Launch, store: Store, folder: Path) -> Path:
    """The checkpoint that the launch names, as its script saved it. Raises CheckpointError, and OSError without S3."""
    job, name, store = launch.resume_job or "", launch.resume_from or "", store.at(launch.checkpoints_url)
    keys = job_keys(job, "")
    manifest = store.read(keys.checkpoint(name))
    if not manifest:
        raise CheckpointError(f"there is no complete checkpoint {name} of job {job}")
    if manifest["world_size"] != launch.world_size:
        raise CheckpointError(
            f"checkpoint {name} of job {job} was saved by {manifest['world_size']} processes, and this job has "
            f"{launch.world_size}: run it with as many, or convert the checkpoint"
        )
    saved_as = manifest["saved_as"]
    if saved_as in ("", "..") or "/" in saved_as:
        raise CheckpointError(f"checkpoint {name} of job {job} was saved as {saved_as!r}, which is no name of a file")
    target = folder / saved_as
    for relative, entry in manifest["files"].items():
        file = folder / relative if manifest["is_file"] else target / relative
        if (
            ".." in Path(relative).parts
            or Path(relative).is_absolute()
            or not store.download(keys.checkpoint_file(name, relative), file)
        ):
            raise CheckpointError(f"checkpoint {name} of job {job} lacks its file {relative}")
        if file.stat().st_size != entry["size"] or sha256_of(file) != entry["sha256"]:
            raise CheckpointError(
                f"the file {relative} of checkpoint {name} of job {job} is not the one that was saved"
            )
    return target
