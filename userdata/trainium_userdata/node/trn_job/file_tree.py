"""The files and symbolic links below a folder, and what cannot be stored in S3."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple


class LinkError(Exception):
    """A symbolic link that is not made. The message is a clause on it."""


class FileTree(NamedTuple):
    """Paths are relative to the folder.

    Attributes:
        files: Sizes in bytes and modification times in nanoseconds.
        links: Targets of the symbolic links that end inside the folder, each relative to the folder of the link.
        left_out: Paths that cannot be stored, as printable text, each with the reason.
    """

    files: dict[str, tuple[int, int]]
    links: dict[str, str]
    left_out: dict[str, str]


def file_tree(
    folder: Path,
    is_ignored: Callable[[str], bool] = lambda path: False,  # noqa: ARG005
    *,
    names_outer_links: bool = True,
) -> FileTree:
    """Read a folder. Files that are deleted in the meantime are omitted.

    Args:
        folder: The folder, which may not exist.
        is_ignored: Whether a path is omitted.
        names_outer_links: Whether `left_out` has the links that end outside of the folder.
    """
    tree = FileTree({}, {}, {})
    root = posixpath.realpath(folder)

    def add(entry: os.DirEntry[str], path: str) -> None:
        if not _is_utf8(entry.name):
            tree.left_out[printable(path)] = "its name is not UTF-8"
        elif entry.is_symlink():
            text = str(Path(entry.path).readlink())
            target = _inner_target(root, path, text)
            if target is not None:
                tree.links[path] = target
            elif names_outer_links:
                tree.left_out[printable(path)] = f"a link to {printable(text)}, outside the folder"
        elif entry.is_dir():
            read(entry.path, f"{path}/")
        else:
            found = entry.stat()
            if not stat.S_ISREG(found.st_mode):
                tree.left_out[printable(path)] = _kind(found.st_mode)
            elif os.access(entry.path, os.R_OK):
                tree.files[path] = found.st_size, found.st_mtime_ns
            else:
                tree.left_out[printable(path)] = "a file that cannot be read"

    def read(below: str, prefix: str) -> None:
        try:
            with os.scandir(below) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        except OSError as error:
            tree.left_out[printable(prefix.rstrip("/")) or "."] = f"a folder that cannot be read: {error.strerror}"
            return
        for entry in found:
            path = prefix + entry.name
            if not is_ignored(path):
                try:
                    add(entry, path)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    tree.left_out[printable(path)] = str(error.strerror)

    read(root, "")
    return tree


def file_version(file: Path) -> tuple[int, int]:
    """The size in bytes and modification time in nanoseconds. Raises OSError."""
    found = file.stat()
    return found.st_size, found.st_mtime_ns


def make_links(folder: Path, links: Mapping[str, str]) -> None:
    """Make symbolic links in a folder with files that nothing else changes.

    Args:
        folder: The folder.
        links: Targets by path. A target is relative to the folder of its link.

    Raises:
        LinkError: A link would lead outside of the folder, or is below a link.
        OSError: A link cannot be made.
    """
    for path, target in links.items():
        inside = posixpath.normpath(posixpath.join(folder, path, "..", target))
        if posixpath.isabs(target) or not _is_inside(inside, str(folder)):
            raise LinkError(f"a link {path} to {target}, outside its folder")
        link = folder / path
        if any((folder / parent).is_symlink() for parent in PurePosixPath(path).parents):
            raise LinkError(f"{path}, which is below a link")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    # A target whose path is inside the folder may be outside it through another link.
    root = posixpath.realpath(folder)
    for path, target in links.items():
        if not _is_inside(posixpath.realpath(folder / path), root):
            raise LinkError(f"a link {path} to {target}, outside its folder")


def printable(path: str) -> str:
    """A path for messages: other bytes than UTF-8 and characters that cannot be printed are escaped."""
    text = os.fsencode(path).decode(errors="backslashreplace")
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def listed(texts: Iterable[str], most: int = 5) -> str:
    """The first texts, and the number of the others."""
    every = list(texts)
    return ", ".join([*every[:most], *([f"{len(every) - most} more"] if len(every) > most else [])])


def _inner_target(root: str, path: str, target: str) -> str | None:
    """The target of a link, relative to the folder of the link; None if the link leads outside of the root.

    `root` has no symbolic links in its path, and `path` is relative to it.
    """
    link = posixpath.join(root, path)
    end = posixpath.realpath(link)
    if not _is_inside(end, root):
        return None
    # Not above the root on the way, so that the link also leads there in a folder with another name.
    direct = posixpath.normpath(posixpath.join(path, "..", target))
    is_kept = direct != ".." and not direct.startswith(("../", "/"))
    return target if is_kept else posixpath.relpath(end, posixpath.dirname(link))


def _is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}{os.sep}")


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(mode: int) -> str:
    kinds = {stat.S_IFSOCK: "a socket", stat.S_IFIFO: "a FIFO"}
    return kinds.get(stat.S_IFMT(mode), "a device")
