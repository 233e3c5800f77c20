"""Stores checkpoints in S3, and downloads them.

Each node stores its part of a checkpoint: its files, then a record of them. Node 0 writes the manifest when all parts
are stored. A checkpoint without a manifest is ignored.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

from trainium_wire.formats import now_text
from trainium_wire.job import ALL_FILES, RESULTS_LOST, checkpoint_part, part_rank, part_version, saved_otherwise
from trainium_wire.job_keys import job_keys
from trn_node.objects import sha256_of

from .launch import Launch
from .store import Store

READERS = 8
CLOCK_MARGIN_SECONDS = 2
"""The assumed maximum difference between the synchronised clocks of two nodes."""
MAX_PARTS_REPORTED = 100
"""Maximum number of parts in a node's record, which contains the last ones."""

OVER = ("succeeded", RESULTS_LOST, "failed", "ended")
"""Final states: a node in one of them stores no more parts."""

Signature = tuple[tuple[str, int, int], ...]


class CheckpointError(Exception):
    """A sentence on why the job cannot continue from a checkpoint."""


class Checkpoints:
    """Stores complete checkpoints from the job's checkpoint folder.

    Args:
        launch: The launch.
        store: The folder of all jobs in S3.
        folder: The checkpoint folder on this node.
        say: Writes a line to the log.
    """

    def __init__(self, launch: Launch, store: Store, folder: Path, say: Callable[[str], None]) -> None:
        self._launch, self._store, self._folder, self._say = launch, store, folder, say
        self._checkpoint_store = store.at(launch.checkpoints_url)
        self._known: dict[str, Signature] = {}
        self._parts: dict[str, str] = {}
        self._pending: dict[str, float] = {}
        self._holds = self._is_sharded = False
        self._uploading = threading.Lock()

    def add_resumed(self, path: Path) -> None:
        """Mark a checkpoint in the folder as the one that the job resumes from, which is already stored."""
        self._known[path.name] = signature(path)

    def upload(self) -> None:
        """Store new and changed checkpoints, the oldest first. On node 0, also write the manifests of complete ones.

        Raises OSError; the next call tries the rest again.
        """
        with self._uploading:
            for path in self._complete_paths():
                before = signature(path)
                if before and before != self._known.get(path.name):
                    self._upload(path, before)
            if self._pending:
                self._complete(self._reports(), final=False)

    def as_record(self) -> dict[str, Any]:
        """For the record of this node: the time, whether it saves checkpoints, and its stored parts by checkpoint."""
        looked = time.time()
        if not self._holds and self._folder.is_dir():
            self._holds = any(
                signature(path) not in ((), self._known.get(path.name)) for path in self._folder.iterdir()
            )
        parts = list(self._parts.items())[-MAX_PARTS_REPORTED:]
        return {"looked": looked, "holds": self._holds or bool(parts), "parts": dict(parts)}

    @property
    def seconds(self) -> float:
        """Seconds until the next `upload`: at most `timing.report` while node 0 waits for parts of other nodes."""
        every = self._launch.spec.checkpoint_seconds
        return min(every, self._launch.timing.report) if self._pending else every

    def complete_all(self) -> None:
        """Write the manifests of complete checkpoints, and report the others in the log.

        Called on node 0 after every node has stored its last part. Raises OSError; the next call tries the rest again.
        """
        with self._uploading:
            self._complete(self._reports(), final=True)

    def await_parts(self, seconds: float, is_cancelled: Callable[[], bool]) -> None:
        """On node 0, write manifests while the other nodes store their parts. Other nodes do not wait.

        Args:
            seconds: Time limit of the wait, which ends earlier once no part can follow.
            is_cancelled: Whether to stop waiting.
        """
        timing = self._launch.timing
        ends, are_over = time.monotonic() + seconds, False
        while self._pending and not (are_over or is_cancelled() or time.monotonic() > ends):
            time.sleep(timing.others)
            with contextlib.suppress(OSError), self._uploading:
                reports = self._reports()
                self._complete(reports, final=False)
                are_over = all(record.get("is_over") for record in reports.values())
        for name in self._pending:
            self._say(f"checkpoint {name} is not complete: parts of other nodes are missing")

    def _complete_paths(self) -> list[Path]:
        """Checkpoints sorted by the time of saving. Scripts rename a complete checkpoint into place."""
        if not self._folder.is_dir():
            return []
        found = [
            path for path in self._folder.iterdir() if not path.name.startswith(".") and not path.name.endswith(".tmp")
        ]
        return sorted(found, key=lambda path: max((entry[2] for entry in signature(path)), default=0))

    def _upload(self, path: Path, before: Signature) -> None:
        name, launch = path.name, self._launch
        version = part_version(self._parts[name]) + 1 if name in self._parts else 1
        # Saving again under the same name must not change the files of an earlier manifest.
        part = checkpoint_part(launch.attempt, launch.rank, version)
        stored: dict[str, Any] = {}
        try:
            for relative, size, _ in before:
                digest = sha256_of(self._folder / relative)
                stored[relative] = {"size": size, "sha256": digest}
                key = launch.job_keys.checkpoint_file(name, part, relative)
                self._checkpoint_store.upload(key, self._folder / relative, digest)
        except FileNotFoundError:
            # The script has deleted the checkpoint.
            return
        if signature(path) != before:
            return
        self._checkpoint_store.write(launch.job_keys.checkpoint_part(name, part), {"files": stored})
        self._known[name], self._parts[name] = before, part
        if not launch.rank:
            self._pending[name] = time.time()

    def _complete(self, reports: Mapping[int, Mapping[str, Any]], *, final: bool) -> None:
        """Write the manifests of pending checkpoints whose parts are complete.

        Args:
            reports: The checkpoint reports of the other nodes, by rank.
            final: Whether no more parts follow.
        """
        launch = self._launch
        owners: dict[str, dict[int, str]] = {name: {0: self._parts[name]} for name in self._pending}
        for rank, record in reports.items():
            for name, part in record.get("parts", {}).items():
                if name in owners or (final and name not in self._parts):
                    owners.setdefault(name, {})[rank] = part
        self._is_sharded |= any(len(parts) > 1 for parts in owners.values())
        for name, parts in owners.items():
            if final:
                missing = [rank for rank, record in reports.items() if rank not in parts and record.get("holds")]
                if 0 not in parts and self._holds:
                    missing.insert(0, 0)
                # If no two nodes save under the same name, each saves its own checkpoints.
                is_whole = not missing or (len(parts) == 1 and not self._is_sharded)
                if not is_whole:
                    self._say(f"checkpoint {name} is not complete: node {missing[0]} has no part of it")
            else:
                since = self._pending[name] + CLOCK_MARGIN_SECONDS
                silent = [rank for rank in range(1, len(launch.nodes)) if rank not in parts]
                is_whole = all(_saves_nothing(reports.get(rank, {}), since) for rank in silent)
                # Parts under a repeated name may be from different steps.
                is_whole &= len(parts) == 1 or all(part_version(part) == 1 for part in parts.values())
            if is_whole:
                manifest = {
                    "name": name,
                    "at": now_text(),
                    "world_size": launch.spec.world_size,
                    "nodes": len(launch.nodes),
                    "parts": [parts[rank] for rank in sorted(parts)],
                }
                self._checkpoint_store.write(launch.job_keys.checkpoint(name), manifest)
            if is_whole or final:
                self._pending.pop(name, None)

    def _reports(self) -> dict[int, dict[str, Any]]:
        """The checkpoint reports of the other nodes. Raises OSError."""
        ranks = range(1, len(self._launch.nodes))
        keys = [self._launch.keys.node(rank) for rank in ranks]
        with ThreadPoolExecutor(READERS) as readers:
            records = readers.map(self._store.read, keys)
            return {rank: _saved_files(record or {}) for rank, record in zip(ranks, records)}


def _saves_nothing(report: Mapping[str, Any], since: float) -> bool:
    """Whether a node saves no checkpoints, by a report after the given time or by its last report. False if unknown."""
    return report.get("holds") is False and (report["is_over"] or report.get("looked", 0) >= since)


def _saved_files(record: Mapping[str, Any]) -> dict[str, Any]:
    return {**record.get("checkpoints", {}), "is_over": record.get("state") in OVER}


def signature(path: Path) -> Signature:
    """The files at a path: names below its parent, sizes in bytes, and modification times in nanoseconds.

    Empty if the path no longer exists. Files that are symbolic links are left out.
    """
    try:
        found = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
        stats = [(str(file.relative_to(path.parent)), file.stat()) for file in found if not file.is_symlink()]
        return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
    except FileNotFoundError:
        return ()


def download(launch: Launch, store: Store, folder: Path) -> Path:
    """Download the checkpoint of the launch to a folder: all files, or only those of this node and node 0.

    If several nodes have saved a file with the same name, a node gets its own, or that of the lowest rank.

    Returns:
        The path of the checkpoint in the folder.

    Raises:
        CheckpointError: The checkpoint does not exist, is incomplete, was changed, or does not suit the job.
        OSError: S3 does not answer or refuses, or the disk fails.
    """
    job, name, store = launch.resume_job or "", launch.resume_from or "", store.at(launch.checkpoints_url)
    keys, what = job_keys(job, ""), f"checkpoint {name} of job {job}"
    manifest = store.read(keys.checkpoint(name))
    if not manifest:
        raise CheckpointError(f"there is no complete checkpoint {name} of job {job}")
    difference = saved_otherwise(manifest, launch.spec)
    if difference:
        raise CheckpointError(f"{what} {difference}: run the job with as many, or convert the checkpoint")
    if name in ("", "..") or "/" in name:
        raise CheckpointError(f"{name!r} is not the name of a checkpoint")
    parts = sorted(manifest["parts"], key=lambda part: (part_rank(part) != launch.rank, part_rank(part)))
    if launch.spec.resume_files != ALL_FILES:
        own = [part for part in parts if part_rank(part) in (0, launch.rank)]
        parts = own or parts
    files: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for part in parts:
        record = store.read(keys.checkpoint_part(name, part))
        if not record:
            raise CheckpointError(f"{what} lacks the part of node {part_rank(part)}")
        for relative, entry in record["files"].items():
            files.setdefault(relative, (part, entry))

    def fetch(relative: str) -> None:
        part, entry = files[relative]
        path, file = PurePosixPath(relative), folder / relative
        is_inside = path.parts[:1] == (name,) and ".." not in path.parts
        if not is_inside or not store.download(keys.checkpoint_file(name, part, relative), file):
            raise CheckpointError(f"{what} lacks its file {relative}")
        if file.stat().st_size != entry["size"] or sha256_of(file) != entry["sha256"]:
            raise CheckpointError(f"the file {relative} of {what} is not the one that was saved")

    with ThreadPoolExecutor(READERS) as readers:
        list(readers.map(fetch, files))
    return folder / name
