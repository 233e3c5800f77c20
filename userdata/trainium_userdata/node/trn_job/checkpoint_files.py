"""Reads what a script has written to its folder of checkpoints."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import posixpath
import struct
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from .completeness import POINTER, Content, File, is_temporary, problem
from .file_tree import FileTree, file_tree, file_version

_ZIP_SUFFIXES = (".bin", ".ckpt", ".pt", ".pth")
"""Suffixes of files of torch.save, which are ZIP archives. The end record of an archive is written last."""
_ZIP_START, _ZIP_END = b"PK\x03\x04", b"PK\x05\x06"
_ZIP_END_BYTES = 22
_LENGTH_BYTES = 8
"""Size of the length of the header at the start of a safetensors file, in bytes."""
_LARGEST_POINTER = 256
_MOVED_TO, _CREATE = 0x80, 0x100
_MOVE_SELF, _OVERFLOW, _IGNORED = 0x800, 0x4000, 0x8000
"""The folder is elsewhere, events are missing, or the folder was deleted."""
_EVENT = struct.Struct("iIII")
_BUFFER_BYTES = 65536


def content_at(path: Path) -> Content | None:
    """What is at the path of a checkpoint; None if it no longer exists.

    Links beside the checkpoint that lead to it, such as `latest`, are a part of it.
    """
    try:
        is_file = path.is_file()
        tree = FileTree({}, {}, {}) if is_file else file_tree(path)
        versions = {f"{path.name}/{name}": version for name, version in tree.files.items()}
        if is_file:
            versions[path.name] = file_version(path)
        links = {**{f"{path.name}/{name}": target for name, target in tree.links.items()}, **_links_beside(path)}
        path.lstat()
        pointer = path.parent / POINTER
        if pointed(pointer) == path.name:
            versions[POINTER] = (len(os.fsencode(path.name)), file_version(pointer)[1])
        found = [File(name, *version) for name, version in versions.items()]
        ends = {file.name: has_end(path.parent / file.name, file.size, file.modified) for file in found}
        found += [File(name, 0, 0, target) for name, target in links.items()]
    except FileNotFoundError:
        return None
    files = tuple(sorted(found))
    cut = next((f"{name} is cut off" for name, is_whole in ends.items() if is_whole is False), "")
    refused = next((f"{path.name}/{name} cannot be stored: {why}" for name, why in tree.left_out.items()), "")
    return Content(files, is_finished=is_file and all(ends.values()), problem=problem(files) or cut or refused)


def _links_beside(path: Path) -> dict[str, str]:
    """The symbolic links beside a checkpoint that lead to it or into it, with their targets."""
    links: dict[str, str] = {}
    for each in path.parent.iterdir():
        if each.is_symlink() and not path.is_symlink():
            end = posixpath.relpath(posixpath.realpath(each), posixpath.realpath(path.parent))
            if end.split("/")[0] == path.name:
                links[each.name] = end
    return links


def left_out(folder: Path, checkpoints: Iterable[Path], *, has_unfinished: bool) -> dict[str, str]:
    """What cannot be stored of checkpoints, and beside them in their folder, each with the reason.

    Args:
        folder: The folder.
        checkpoints: The checkpoints in it.
        has_unfinished: Whether unfinished saves are among the checkpoints.
    """
    names = {path.name for path in checkpoints if path.is_dir()}
    found = file_tree(folder, lambda path: "/" in path or (is_temporary(path) and not has_unfinished)).left_out
    for name in sorted(names):
        found.update({f"{name}/{path}": reason for path, reason in file_tree(folder / name).left_out.items()})
    return found


def pointed(file: Path) -> str:
    """The name in a file of DeepSpeed beside the checkpoint that it names; empty if it is not such a file."""
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST_POINTER:
            return ""
        name = file.read_text(errors="replace").strip()
        is_beside = bool(name) and "/" not in name and (file.parent / name).is_dir()
    except OSError:
        return ""
    return name if is_beside else ""


@functools.lru_cache(maxsize=100_000)
def has_end(path: Path, size: int, _modified: int) -> bool | None:
    """Whether a file of torch.save or safetensors has its end; None for other files.

    Args:
        path: The path of the file.
        size: Its size in bytes. The result is cached by size and time of modification.
    """
    if not size or path.suffix not in (*_ZIP_SUFFIXES, ".safetensors"):
        return None
    with path.open("rb") as file:
        if path.suffix == ".safetensors":
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            end = _LENGTH_BYTES + length
            return size >= end and size == end + _data_bytes(file.read(length))
        if file.read(len(_ZIP_START)) != _ZIP_START:
            return None
        file.seek(max(0, size - _ZIP_END_BYTES))
        return file.read().startswith(_ZIP_END)


def _data_bytes(header: bytes) -> int:
    """The size of the tensors of a safetensors file in bytes, by its header; -1 if the header is not whole."""
    try:
        tensors = cast("dict[str, Any]", json.loads(header))
        return max((each["data_offsets"][1] for name, each in tensors.items() if name != "__metadata__"), default=0)
    except (ValueError, LookupError, TypeError, AttributeError):
        return -1


class FolderWatch:
    """The names that appear in a folder, by inotify(7).

    Attributes:
        names: The names that were made in the folder or renamed into it; None if Linux does not report them all.

    Args:
        folder: The folder, which exists.
    """

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._events = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._events >= 0:
            weakref.finalize(self, os.close, self._events)  # a user has few of them (fs.inotify.max_user_instances)
        watch = libc.inotify_add_watch(self._events, os.fsencode(folder), _MOVED_TO | _CREATE | _MOVE_SELF)
        self._reading = threading.Lock()
        self._renamed: set[str] = set()
        self._names: set[str] | None = None if watch < 0 else set()

    @property
    def names(self) -> set[str] | None:
        with self._reading:
            self._read()
            return self._names

    def take_renamed(self) -> set[str]:
        """The names that were renamed into the folder since the last call, and not created there afterwards."""
        with self._reading:
            self._read()
            renamed, self._renamed = self._renamed, set()
            return renamed

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                events, start = os.read(self._events, _BUFFER_BYTES), 0
                while start < len(events):
                    _, mask, _, length = _EVENT.unpack_from(events, start)
                    start += _EVENT.size + length
                    name = os.fsdecode(events[start - length : start].rstrip(b"\0"))
                    if mask & (_MOVE_SELF | _OVERFLOW | _IGNORED):
                        self._names = None
                    if mask & (_MOVED_TO | _CREATE):
                        (self._renamed.add if mask & _MOVED_TO else self._renamed.discard)(name)
                        self._names = None if self._names is None else self._names | {name}
