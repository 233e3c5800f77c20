"""Checkpoints on their way to S3 and back. One without a manifest, which is written last, does not exist."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from trn_node.job_files import now
from trn_node.objects import sha256_of

from .launch import Launch
from .store import Store


class CheckpointError(Exception):
    """Why the job cannot go on from a checkpoint, in a sentence."""


class Checkpoints:
    """Uploads what is complete in the job's checkpoint folder. seconds: spent on it so far.

    With `checkpoint_nodes` = "all" each node saves a part, and a checkpoint is complete when all have. Otherwise those
    of node 0 are kept alone.
    """

    def __init__(self, launch: Launch, store: Store, folder: Path) -> None:
        self._launch, self._store, self._folder = launch, store, folder
        self._kept = store.at(launch.checkpoints_url)
        self._known: dict[str, tuple[tuple[str, int, int], ...]] = {}
        self._versions: dict[str, int] = {}
        self._waiting: dict[str, dict[str, Any]] = {}
        self._all_save = launch.spec.get("checkpoint_nodes") == "all"
        self.seconds = 0.0
        self.stored: list[str] = []

    @property
    def unwanted(self) -> bool:
        """Whether there are any that are not kept, since this is not node 0."""
        return bool(self._launch.rank and not self._all_save and self._complete_paths())

    def upload(self) -> None:
        """What is new, the oldest first. Raises OSError; the next call goes on."""
        if self._launch.rank and not self._all_save:
            return
        start = time.monotonic()
        try:
            for path in self._complete_paths():
                before = signature(path)
                if before and before != self._known.get(path.name):
                    self._upload(path, before)
            for name in list(self._waiting):
                self._join_parts(name)
        finally:
            self.seconds += time.monotonic() - start

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
        part = f"node-{self._launch.rank}/" if self._launch.rank else ""
        stored: dict[str, Any] = {}
        try:
            for relative, size, _ in before:
                file = path / relative if relative else path
                digest = sha256_of(file)
                stored[part + (relative or path.name)] = {"size": size, "sha256": digest}
                self._kept.upload(f"{self._launch.job}/checkpoints/{name}/{part}{relative or path.name}", file, digest)
        except FileNotFoundError:
            # The script deleted it meanwhile.
            return
        if signature(path) != before:
            return
        self._known[path.name], self._versions[path.name] = before, version
        manifest = {
            "name": name,
            "saved_as": path.name,
            "is_file": path.is_file(),
            "at": now(),
            "world_size": self._launch.world_size,
            "files": stored,
        }
        if self._launch.rank:
            self._store.write(f"{self._launch.key}/checkpoints/{name}/node-{self._launch.rank}.json", manifest)
        elif self._all_save and len(self._launch.nodes) > 1:
            self._waiting[name] = manifest
        else:
            self._publish(manifest)

    def _join_parts(self, name: str) -> None:
        manifest = self._waiting[name]
        for rank in range(1, len(self._launch.nodes)):
            if f"node-{rank}/" not in manifest.setdefault("parts", []):
                part = self._store.read(f"{self._launch.key}/checkpoints/{name}/node-{rank}.json")
                if not part:
                    return
                manifest["files"].update(part["files"])
                manifest["parts"].append(f"node-{rank}/")
        del self._waiting[name]
        self._publish(manifest)

    def _publish(self, manifest: dict[str, Any]) -> None:
        self._kept.write(f"{self._launch.job}/checkpoints/{manifest['name']}.json", manifest)
        self.stored.append(manifest["name"])


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
    job, name, store = launch.resume_job, launch.resume_from, store.at(launch.checkpoints_url)
    manifest = store.read(f"{job}/checkpoints/{name}.json")
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
    parts = manifest.get("parts", [])
    for key, entry in manifest["files"].items():
        part = next((each for each in parts if key.startswith(each)), "")
        if part not in ("", f"node-{launch.rank}/"):
            continue
        relative = key[len(part) :]
        file = folder / relative if manifest["is_file"] else target / relative
        if (
            ".." in Path(relative).parts
            or Path(relative).is_absolute()
            or not store.download(f"{job}/checkpoints/{name}/{key}", file)
        ):
            raise CheckpointError(f"checkpoint {name} of job {job} lacks its file {key}")
        if file.stat().st_size != entry["size"] or sha256_of(file) != entry["sha256"]:
            raise CheckpointError(f"the file {key} of checkpoint {name} of job {job} is not the one that was saved")
    return target
