"""Stores the outputs of a node in S3: its output folder, and what the script wrote to its working or home directory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

from trainium_wire.formats import now_text
from trainium_wire.job_keys import output_path
from trn_node.objects import file_digest
from trn_node.s3 import S3Error

from .checkpoint_files import has_end
from .file_tree import FileTree, file_tree, file_version, listed, make_links, printable
from .launch import Launch
from .store import CONNECTIONS, Store

WORKING_DIRECTORY = "working-directory"
"""The folder of the outputs with the files that the script wrote to its working directory, the unpacked source."""
HOME_DIRECTORY = "home-directory"
"""The folder of the outputs with what the script wrote to its home directory, in which the working directory is.

It also has relative paths such as `../results`. Hidden files are no outputs.
"""
OWN_FILES = ("command.sh", "observe", "torchrun")
"""What this program writes to the home directory while the command runs."""
LARGEST_WRITTEN_GIB = 20
"""Maximum size of the files in these two folders on each node."""
SMALL_BYTES = 16 * 1024**2
"""While the command runs, larger files are stored once they have not changed between two looks."""
MAX_FAILED_REQUESTS = 3
"""Limit of failed requests in one upload, because each takes seconds. The next upload starts with the other files."""
KEY_TOO_LONG = "KeyTooLongError"
"""S3's error code for keys of more than 1,024 bytes."""
ANOTHER_VERSION = -1, -1
"""The size and time of an earlier version that is in S3."""
_GIB = 1024**3


class Outputs:
    """The outputs of this node.

    Attributes:
        left_out: After an upload, the reasons why paths cannot be stored in S3.
        unstored: A clause on the outputs that are not in S3 if the node is lost now; empty if there are none.
    """

    def __init__(self, launch: Launch, store: Store, say: Callable[[str], None]) -> None:
        self._launch, self._store, self._say = launch, store, say
        self._folder = launch.place / "outputs"
        self._written = {WORKING_DIRECTORY: launch.place / "source", HOME_DIRECTORY: launch.place}
        self._at_start: dict[str, FileTree] = {}
        self._others_at_home: set[str] = set()
        self._seen: dict[str, tuple[int, int]] = {}
        self._stored: dict[str, tuple[int, int]] = {}
        self._digests: dict[str, str] = {}
        self._listed: dict[str, Any] = {"files": [], "links": {}}
        self._failed: dict[str, OSError] = {}
        self._uploading = threading.Lock()
        self._is_restored = launch.attempt == 1
        self._ended_well = False
        self._said: set[str] = set()
        others = () if launch.rank else range(1, len(launch.nodes))
        self._others = {output_path(other, "").rstrip("/") for other in others}
        self.left_out: dict[str, str] = {}
        self.unstored = ""

    def restore(self, store: Store) -> None:
        """Download from `store` the outputs that the last attempt of this rank had.

        Raises:
            OSError: S3 does not answer or refuses, or the disk fails.
            LinkError: A link would lead outside of its folder.
        """
        rank, keys = self._launch.rank, self._launch.job_keys
        known = store.read(keys.output_list(rank)) or {"files": [], "links": {}}
        # Any node of the job can write the list.
        outside = [path for path in known["files"] if ".." in path.split("/") or path.startswith("/") or "//" in path]
        if outside:
            raise OSError(f"the output {printable(outside[0])} of an earlier attempt would be outside its folder")

        def fetch(path: str) -> None:
            if not store.download(keys.output(rank, path), self._file(path)):
                raise OSError(f"the output {printable(path)} of an earlier attempt was deleted")
            self._stored[path] = file_version(self._file(path))

        with ThreadPoolExecutor(CONNECTIONS) as readers:
            list(readers.map(fetch, known["files"]))
        links: dict[Path, dict[str, str]] = {}
        for path, target in known["links"].items():
            folder, rest = self._place(path)
            links.setdefault(folder, {})[rest] = target
        for folder, targets in links.items():
            make_links(folder, targets)
        self._listed, self._is_restored = known, True

    def begin(self) -> None:
        """Note the files of the working directory, which are not outputs unless the command changes them.

        Files of earlier attempts are outputs in any case. What else is in the home directory is no output.
        """
        restored = [self._place(path) for path in (*self._listed["files"], *self._listed["links"])]
        home = self._written[HOME_DIRECTORY]
        outputs_at_home = {path.partition("/")[0] for folder, path in restored if folder == home}
        self._others_at_home = {*OWN_FILES, *(entry.name for entry in home.iterdir())} - outputs_at_home
        for name, folder in self._written.items():
            found = self._written_tree(name)
            for at, path in restored:
                if at == folder:
                    found.files.pop(path, None)
                    found.links.pop(path, None)
            self._at_start[name] = found

    def end_running(self, exit_code: int | None) -> None:
        """Record that the processes have ended.

        Args:
            exit_code: Exit code of the command.
        """
        self._ended_well = exit_code == 0

    def upload(self, *, is_running: bool = False) -> None:
        """Store new and changed files. After MAX_FAILED_REQUESTS, most other files are left to the next call.

        Raises:
            OSError: Not every file is stored.
        """
        with self._uploading:
            # Otherwise the list would lack what the next attempt needs.
            if self._is_restored:
                self._upload(is_running=is_running)

    def _upload(self, *, is_running: bool) -> None:
        rank, keys, began, tree = self._launch.rank, self._launch.job_keys, now_text(), self._tree()
        for path, reason in tree.left_out.items() if not is_running else ():
            if self.left_out.get(path) != reason:
                self._say(f"outputs: {path} is not stored: {reason}")
        self.left_out = {} if is_running else tree.left_out
        self._failed = {path: error for path, error in self._failed.items() if path in tree.files}
        if not is_running:
            self._forget_changed(tree)
        due = [path for path, version in tree.files.items() if self._stored.get(path) != version]
        if is_running:
            due = [path for path in due if not _is_temporary(path) and self._is_steady(path, tree.files[path])]
        if not self._ended_well:
            cut_off = [path for path in due if self._is_cut_off(path, tree.files[path])]
            # Without an earlier version, a part is better than nothing.
            kept = [path for path in cut_off if is_running or path in self._stored]
            due = [path for path in due if path not in kept]
            for path in kept if not is_running else ():
                self._say_once(f"outputs: the last version of {printable(path)} is not stored: it is cut off")
        self._store_files(sorted(due, key=lambda path: path in self._failed), tree, is_running=is_running)
        self._seen = tree.files
        now = {"files": sorted(tree.files.keys() & self._stored.keys()), "links": tree.links}
        if now != self._listed:
            self._store.write(keys.output_list(rank), now)
            self._listed = now
        left = [path for path, version in tree.files.items() if self._stored.get(path) != version]
        among = f", among them {listed(map(printable, left))}" if left else ""
        self.unstored = (
            f"outputs of the node that were written after {began} are not in S3{among}" if tree.files else ""
        )
        if self._failed:
            # An error that is not a refusal comes first, because the next call may then succeed.
            example = min(self._failed.values(), key=is_refusal)
            raise example if len(left) == 1 else SomeLeftError(left, example)

    def _is_steady(self, path: str, version: tuple[int, int]) -> bool:
        return version[0] <= SMALL_BYTES or self._seen.get(path) == version

    def _is_cut_off(self, path: str, version: tuple[int, int]) -> bool:
        """Whether a process may have been writing a file of torch.save or safetensors when it ended, or still does."""
        try:
            return has_end(self._file(path), *version) is False
        except OSError:
            return False

    def _say_once(self, line: str) -> None:
        if line not in self._said:
            self._say(line)
        self._said.add(line)

    def _forget_changed(self, tree: FileTree) -> None:
        """Let the files be stored again whose content has changed since, but not their size and time.

        Scripts can set the time, and a memory map changes it only once for each page that the kernel writes to disk.
        """
        paths = [path for path in self._digests if self._stored.get(path) == tree.files.get(path)]
        with ThreadPoolExecutor(CONNECTIONS) as readers:
            for path, is_same in zip(paths, readers.map(self._has_same_content, paths)):
                if not is_same:
                    self._stored[path] = ANOTHER_VERSION
        self._digests = {}

    def _has_same_content(self, path: str) -> bool:
        try:
            return file_digest(self._file(path)) == self._digests[path]
        except OSError:
            return False

    def _store_files(self, paths: Sequence[str], tree: FileTree, *, is_running: bool) -> None:
        def store(path: str) -> OSError | None:
            try:
                if is_running:
                    self._digests[path] = file_digest(self._file(path))
                self._store.upload(self._launch.job_keys.output(self._launch.rank, path), self._file(path))
            except OSError as error:
                return error
            return None

        failed_requests = 0
        with ThreadPoolExecutor(CONNECTIONS) as connections:
            for start in range(0, len(paths), CONNECTIONS):
                if failed_requests >= MAX_FAILED_REQUESTS:
                    break
                some = paths[start : start + CONNECTIONS]
                for path, error in zip(some, connections.map(store, some)):
                    self._failed.pop(path, None)
                    if error is None:
                        self._stored[path] = tree.files[path]
                    else:
                        self._failed[path] = error
                        failed_requests += not error.errno

    def _place(self, path: str) -> tuple[Path, str]:
        """The folder on this node of an output, and its path there."""
        first, _, rest = path.partition("/")
        return (self._written[first], rest) if first in self._written else (self._folder, path)

    def _file(self, path: str) -> Path:
        folder, rest = self._place(path)
        return folder / rest

    def _written_tree(self, name: str) -> FileTree:
        """The working or the home directory, without links that leave it, and without files that are never outputs."""
        is_ignored = _is_cache if name == WORKING_DIRECTORY else self._is_no_output_at_home
        return file_tree(self._written[name], is_ignored, names_outer_links=False)

    def _is_no_output_at_home(self, path: str) -> bool:
        first = path.partition("/")[0]
        return first in self._others_at_home or first.startswith(".") or _is_cache(path)

    def _tree(self) -> FileTree:
        """The outputs, by their paths in S3. Those outside of the output folder are links and new or changed files."""
        tree = file_tree(self._folder)
        for path in [*tree.files, *tree.links]:
            if path.partition("/")[0] in (*self._others, *self._written):
                tree.files.pop(path, None)
                tree.links.pop(path, None)
                tree.left_out[printable(path)] = "the name is that of other outputs"
        files: dict[str, tuple[int, int]] = {}
        for name, before in self._at_start.items():
            new = self._written_tree(name)
            files |= {f"{name}/{path}": version for path, version in new.files.items() - before.files.items()}
            for path, target in new.links.items() - before.links.items():
                tree.links[f"{name}/{path}"] = target
            for path, reason in new.left_out.items() - before.left_out.items():
                tree.left_out[f"{name}/{path}"] = reason
        used = 0
        for path in sorted(files, key=lambda path: (self._stored.get(path) != files[path], -files[path][1])):
            used += files[path][0]
            if used <= LARGEST_WRITTEN_GIB * _GIB or self._stored.get(path) == files[path]:
                tree.files[path] = files[path]
            else:
                why = f"the script wrote more than {LARGEST_WRITTEN_GIB} GiB outside of its output folder"
                tree.left_out[printable(path)] = why
        return tree


def _is_temporary(path: str) -> bool:
    """Whether the script will rename or delete a path, by the usual names."""
    name = PurePosixPath(path).name
    return name.startswith(".") or name.endswith(".tmp")


def _is_cache(path: str) -> bool:
    """Whether Python wrote a path without being asked to."""
    return path.endswith(".pyc") or PurePosixPath(path).name == "__pycache__"


class SomeLeftError(OSError):
    """Several files were not stored.

    Attributes:
        example: The reason for one of them.
    """

    def __init__(self, left: Sequence[str], example: OSError) -> None:
        super().__init__(f"{len(left)} files were not stored: {listed(map(printable, left))}, for example: {example}")
        self.example = example


def is_refusal(error: Exception) -> bool:
    """Whether retries are unlikely to help: S3 has refused a request, or a file cannot be read."""
    if isinstance(error, SomeLeftError):
        return is_refusal(error.example)
    return (
        error.status in (403, 404) or error.code == KEY_TOO_LONG
        if isinstance(error, S3Error)
        else isinstance(error, OSError) and bool(error.errno)
    )
