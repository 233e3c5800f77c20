"""Stores checkpoints in S3.

Each node stores its part of a checkpoint: its files, then a record of them. Node 0 writes the manifest when the
checkpoint was whole on all nodes (completeness.py). A checkpoint without a manifest is ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from trainium_wire.formats import now_text
from trainium_wire.job import RESULTS_LOST, checkpoint_part, part_rank
from trainium_wire.job_keys import INCOMPLETE_CHECKPOINTS
from trn_node.objects import file_digest

from .checkpoint_files import FolderWatch, content_at, left_out, pointed
from .completeness import (
    POINTER,
    Content,
    File,
    NodeReports,
    Sighting,
    View,
    is_temporary,
    needed_marks,
    series,
    sighting,
    view,
    why_incomplete,
)
from .file_tree import listed, printable
from .launch import Launch
from .store import CONNECTIONS, Store, in_parallel

MAX_PARTS_REPORTED = 100
"""Maximum number of parts in a node's record while the command runs. It contains the last ones."""
MAX_NAMES_REPORTED = 1000
"""A node that has made more entries in its folder does not report their names."""
LOOKS_AFTER_A_CHANGE = 8
"""For so many reports after a change of the folder, a node looks as often as it reports."""

OVER = ("succeeded", RESULTS_LOST, "failed", "ended")
"""Final states: a node in one of them stores no more parts."""


class Checkpoints:
    """Stores checkpoints from the job's checkpoint folder, and on node 0 the manifests of complete ones.

    Attributes:
        incomplete: On node 0 at the end, the names of the checkpoints that are not complete.

    Args:
        launch: The launch.
        store: The folder of all jobs in S3.
        folder: The checkpoint folder on this node.
        say: Writes a line to the log.
        clock: Returns the time in seconds since the epoch.
    """

    def __init__(
        self,
        launch: Launch,
        store: Store,
        folder: Path,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._launch, self._store, self._folder, self._say, self._clock = launch, store, folder, say, clock
        self._checkpoint_store = store.at(launch.checkpoints_url)
        self._resumed: dict[str, Content] = {}
        self._of_others = frozenset[File]()
        self._seen: dict[str, Sighting] = {}
        self._uploaded: dict[str, dict[File, str]] = {}
        self._versions: dict[str, int] = {}
        self._published: dict[str, list[str]] = {}
        self._pending: dict[str, str] = {}
        self._reported: dict[int, Mapping[str, View]] = {}
        self._said: set[str] = set()
        self._watch: FolderWatch | None = None
        self._exit_code: int | None = None
        self._is_running = True
        self._names: set[str] = set()
        self._looked = self._changed = 0.0
        self._uploading = threading.Lock()
        self.incomplete: list[str] = []

    def add_resumed(self, path: Path, others: Collection[str]) -> None:
        """Mark a checkpoint as the one that the job resumes from, which is stored. Other nodes have saved `others`."""
        content = self._resumed[path.name] = content_at(path) or Content(())
        self._of_others = frozenset(file for file in content.files if file.name in others)

    def begin_running(self) -> None:
        """Watch the folder, which exists and into which the command has not written yet."""
        self._watch = FolderWatch(self._folder)

    def end_running(self, exit_code: int | None) -> None:
        """Record that the processes have ended, so that the folder no longer changes.

        Args:
            exit_code: Exit code of the command.
        """
        self._exit_code, self._is_running = exit_code, False

    def upload(self) -> None:
        """Store new and changed checkpoints, the oldest first. On node 0, also write the manifests of complete ones.

        Raises OSError; the next call tries the rest again.
        """
        with self._uploading:
            self._look()
            for name in sorted(self._seen, key=lambda name: _newest(self._seen[name].content)):
                if not self._seen[name].part:
                    self._upload(name)
            if not self._launch.rank and self._seen:
                nodes = self._nodes()
                self._publish(nodes, _names(nodes))
            if not self._is_running:
                self._check_all_are_stored()

    def _check_all_are_stored(self) -> None:
        """Raises OSError for entries that changed after the command had ended. Names unfinished saves in the log."""
        unstored = [name for name, seen in self._seen.items() if seen.content.files and not seen.part]
        if unstored:
            raise OSError(f"{listed(map(printable, unstored))} changed while they were stored")
        names = sorted(path.name for path in self._entries() if is_temporary(path.name))
        for name in names if not self._ended_well else ():
            self._say_once(f"checkpoints: {printable(name)} is not stored: its name is that of an unfinished save")

    def as_record(self) -> dict[str, Any]:
        """For the record of this node: the time of its last look, the names, and its part of each checkpoint."""
        if not self._names:
            looked = self._clock()
            self._names |= self._own_names()
            self._looked = looked if self._is_running and not self._names else self._looked
        most = MAX_PARTS_REPORTED if self._is_running else 0
        views = {name: each._asdict() for name, each in list(self._views().items())[-most:]}
        names = self._reported_names()
        return {
            "looked": self._looked,
            "names": None if names is None else sorted(names),
            "ended_well": self._ended_well,
            "views": views,
        }

    @property
    def seconds(self) -> float:
        """Seconds until the next `upload`: short after a change, and while node 0 waits for other nodes."""
        often = LOOKS_AFTER_A_CHANGE * self._settle_seconds
        if self._pending or self._clock() - self._changed < often:
            return self._settle_seconds
        return self._launch.spec.checkpoint_seconds

    def complete_all(self) -> None:
        """Write the manifests of complete checkpoints and the list of the others, and report these in the log.

        Called on node 0 after every node has stored its last part. Raises OSError; the next call tries the rest again.
        """
        with self._uploading:
            nodes = self._nodes()
            self._publish(nodes, _names(nodes))
            self._list_incomplete(nodes)

    def await_parts(self, seconds: float, is_cancelled: Callable[[], bool]) -> None:
        """On node 0, write manifests while the other nodes store their parts, then the list of incomplete checkpoints.

        Other nodes do not wait.

        Args:
            seconds: Time limit of the wait, which ends earlier once no part can follow.
            is_cancelled: Whether to stop waiting.
        """
        timing = self._launch.timing
        if self._launch.rank:
            return
        ends, are_over = time.monotonic() + seconds, False
        while not (are_over or is_cancelled() or time.monotonic() > ends):
            with contextlib.suppress(OSError), self._uploading:
                nodes = self._nodes()
                self._publish(nodes, _names(nodes))
                are_over = all(node.is_over or not (self._pending or node.names) for node in nodes.values())
            if not are_over:
                time.sleep(timing.others)
        try:
            with self._uploading:
                self._list_incomplete(self._nodes())
        except OSError as error:
            self._say(f"the list of incomplete checkpoints: {error}")

    @property
    def _settle_seconds(self) -> float:
        return min(self._launch.spec.checkpoint_seconds, self._launch.timing.report)

    @property
    def _ended_well(self) -> bool:
        return not self._is_running and self._exit_code == 0

    def _own_names(self) -> set[str]:
        """The names that the script has made in the folder, also of unfinished checkpoints and deleted ones."""
        resumed = {file.name.partition("/")[0] for content in self._resumed.values() for file in content.files}
        made = {
            path.name
            for path in self._entries()
            if path.name not in resumed or (path.name in self._resumed and not self._is_resumed(path))
        }
        return made | ((self._watch.names if self._watch else None) or set())

    def _reported_names(self) -> set[str] | None:
        """The names that the script has made; None if they are not all known, or too many."""
        is_known = not self._names or (self._watch is not None and self._watch.names is not None)
        return self._names if is_known and len(self._names) <= MAX_NAMES_REPORTED else None

    def _entries(self) -> list[Path]:
        with contextlib.suppress(FileNotFoundError):
            return list(self._folder.iterdir())
        return []

    def _paths(self) -> list[Path]:
        """The checkpoints in the folder. Unfinished saves are among them only after the command has ended well."""
        return [
            path
            for path in self._entries()
            if (self._ended_well or not is_temporary(path.name))
            and not path.is_symlink()
            and not (path.name == POINTER and pointed(path))
        ]

    @property
    def left_out(self) -> dict[str, str]:
        """What the folder has at present and S3 cannot store, each with the reason."""
        return left_out(self._folder, self._paths(), has_unfinished=self._ended_well)

    def _is_resumed(self, path: Path) -> bool:
        resumed = self._resumed.get(path.name)
        content = content_at(path) if resumed else None
        return resumed is not None and (content is None or set(content.files) <= set(resumed.files))

    def _look(self) -> None:
        looked = self._clock()
        renamed = self._watch.take_renamed() if self._watch else ()
        names = {path.name for path in self._paths() if not self._is_resumed(path)}
        self._names |= self._own_names()
        for name in names | self._seen.keys():
            self._look_at(name, is_renamed=name in renamed)
        if self._is_running:
            self._looked = looked

    def _look_at(self, name: str, *, is_renamed: bool = False) -> bool:
        """Record what the folder has of a checkpoint. Returns whether it has changed."""
        before, began = self._seen.get(name), self._clock()
        content = content_at(self._folder / name)
        if content is None:
            content = Content(())
        elif is_temporary(name) and not content.problem:
            content = content._replace(problem="its name is that of an unfinished save")
        after = sighting(
            before,
            content._replace(is_finished=content.is_finished or is_renamed),
            began,
            self._clock(),
            settle_seconds=self._settle_seconds,
            is_running=self._is_running,
        )
        is_changed = before is None or after.content.files != before.content.files
        if is_changed:
            self._changed = self._clock()
            # The last ones are reported.
            self._seen.pop(name, None)
        self._seen[name] = after
        return is_changed

    def _upload(self, name: str) -> None:
        """Store the files of a checkpoint that no longer change, and its part once all are stored."""
        seen, launch = self._seen[name], self._launch
        # Saving again under the same name must not change the files of an earlier manifest.
        version = self._versions.get(name, 0) + 1
        part, uploaded = checkpoint_part(launch.attempt, launch.rank, version), self._uploaded.setdefault(name, {})

        def store(file: File) -> None:
            key = launch.job_keys.checkpoint_file(name, part, file.name)
            if file.target:
                uploaded[file] = ""
            elif file.name == POINTER != name:
                # It may lead to the next checkpoint by now.
                text = os.fsencode(name)
                self._checkpoint_store.write_text(key, text)
                uploaded[file] = hashlib.sha256(text).hexdigest()
            else:
                digest = file_digest(self._folder / file.name)
                self._checkpoint_store.upload(key, self._folder / file.name, digest)
                uploaded[file] = digest

        is_at_rest = not self._is_running or seen.content.is_finished
        files = seen.content.files if is_at_rest else seen.steady
        with contextlib.suppress(FileNotFoundError):
            # The script may delete the checkpoint.
            in_parallel(store, [file for file in files if file not in uploaded])
        if not seen.content.files or not uploaded.keys() >= set(seen.content.files) or self._look_at(name):
            return
        if not launch.rank and self._is_running and not self._has_marks(seen.content):
            return
        links = {file.name: file.target for file in seen.content.files if file.target}
        files = {file: digest for file, digest in uploaded.items() if not file.target}
        stored = {file.name: {"size": file.size, "sha256": digest} for file, digest in files.items()}
        self._checkpoint_store.write(launch.job_keys.checkpoint_part(name, part), {"files": stored, "links": links})
        self._seen[name] = self._seen[name]._replace(part=part)
        self._versions[name], self._uploaded[name] = version, {}

    def _has_marks(self, content: Content) -> bool:
        """Whether the files have the end marks that they call for."""
        names = {file.name for file in content.files}
        return all(mark in names for name in names for mark in needed_marks(name))

    def _publish(self, nodes: Mapping[int, NodeReports], names: Iterable[str]) -> None:
        """Write the manifests of complete checkpoints.

        Args:
            nodes: The reports of all nodes by rank.
            names: The checkpoints.
        """
        launch = self._launch
        for name in names:
            parts = _parts(name, nodes)
            if parts and parts == self._published.get(name):
                self._pending.pop(name, None)
                continue
            reason = why_incomplete(name, nodes, settle_seconds=self._settle_seconds)
            self._pending[name] = reason
            if reason:
                continue
            manifest = {
                "name": name,
                "at": now_text(),
                "world_size": launch.spec.world_size,
                "nodes": len(launch.nodes),
                "parts": parts,
            }
            self._checkpoint_store.write(launch.job_keys.checkpoint(name), manifest)
            self._published[name] = parts
            self._pending.pop(name)

    def _list_incomplete(self, nodes: Mapping[int, NodeReports]) -> None:
        """Report incomplete checkpoints in the log, and store a list of their parts, from which they can be fetched."""
        for name, reason in self._pending.items():
            which = "the last version of checkpoint" if name in self._published else "checkpoint"
            self._say_once(f"{which} {printable(name)} is not complete: {reason}")
        parts = {name: found for name in self._pending if (found := _parts(name, nodes))}
        if parts or self._launch.attempt > 1:
            self._store.write(self._launch.job_keys.incomplete_checkpoints, {"parts": parts})
        if parts:
            self._say_once(f"`trn cp {self._launch.job}:{INCOMPLETE_CHECKPOINTS} DIR` copies what is stored of them")
        self.incomplete = sorted(self._pending)

    def _say_once(self, line: str) -> None:
        if line not in self._said:
            self._say(line)
        self._said.add(line)

    def _views(self) -> dict[str, View]:
        return {name: view(seen, self._of_others) for name, seen in list(self._seen.items())}

    def _nodes(self) -> dict[int, NodeReports]:
        """What all nodes have reported, by rank. Raises OSError."""
        over, ranks = not self._is_running, range(1, len(self._launch.nodes))
        nodes = {0: NodeReports(self._looked, self._reported_names(), over, self._ended_well, self._views())}
        keys = [self._launch.keys.node(rank) for rank in ranks]
        with ThreadPoolExecutor(CONNECTIONS) as connections:
            records = list(connections.map(self._store.read, keys))
        for rank, record in zip(ranks, records):
            found = record or {}
            node = NodeReports.from_record(found.get("checkpoints", {}), is_over=found.get("state") in OVER)
            # A record contains only the last parts.
            self._reported[rank] = {**self._reported.get(rank, {}), **node.views}
            saves_nothing = {
                series(name) for name, parts in self._published.items() if rank not in map(part_rank, parts)
            }
            nodes[rank] = node._replace(views=self._reported[rank], saves_nothing=saves_nothing)
        return nodes


def _names(nodes: Mapping[int, NodeReports]) -> list[str]:
    """The checkpoints of which any node has a part."""
    return list(dict.fromkeys(name for _, node in sorted(nodes.items()) for name in node.views))


def _parts(name: str, nodes: Mapping[int, NodeReports]) -> list[str]:
    """The stored parts of a checkpoint, in the order of ranks."""
    parts = [node.views[name].part for _, node in sorted(nodes.items()) if name in node.views]
    return [part for part in parts if part]


def _newest(content: Content) -> int:
    return max((file.modified for file in content.files), default=0)
