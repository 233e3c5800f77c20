"""Copies files between this machine and nodes, with jobs that have only an input or an output."""

import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainium_core.jobs.request import JobRequest

ALL = "all"
_INPUT = "copied"
_NAME = "cp"
_REMOTE = re.compile(r"(?P<where>[A-Za-z0-9-]+):(?P<path>.*)", re.DOTALL)
_MAX_LINKS_IN_PATH = 8
_INSTANCE_ID = re.compile(r"i-[0-9a-f]{8,17}")


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A remote path.

    Attributes:
        where: `all` for all nodes, the rank or instance ID of a node, or a job ID.
        path: The path there.
    """

    where: str
    path: str

    @property
    def is_job(self) -> bool:
        return not (self.where == ALL or self.where.isdecimal() or _INSTANCE_ID.fullmatch(self.where))

    def rank(self, members: Sequence[str]) -> int | None:
        """The rank of the node; None for all nodes.

        Args:
            members: Instance IDs, ordered by rank.

        Raises:
            LookupError: No member has this rank or ID.
        """
        if self.where == ALL:
            return None
        rank = int(self.where) if self.where.isdecimal() else members.index(self.where) if self.where in members else -1
        if not 0 <= rank < len(members):
            raise LookupError(self.where)
        return rank


def remote(text: str) -> Remote | None:
    """Parse a remote path, such as 0:/tmp/core; None for a local path."""
    match = _REMOTE.fullmatch(text)
    return Remote(where=match["where"], path=match["path"]) if match else None


def copy_to(file: Path, path: str, rank: int | None) -> JobRequest:
    """A job that copies a file or directory to a path on all nodes, or on one. A path ending with / is a folder."""
    target = f"{path}{file.name}" if path.endswith("/") else path
    parent = shlex.quote(str(PurePosixPath(target).parent))
    copying = f'mkdir -p -- {parent} && cp -rT -- "$TRN_INPUT_DIR/{_INPUT}" {shlex.quote(target)}'
    return _request(copying, rank, {_INPUT: str(file)})


def copy_from(path: str, rank: int | None) -> JobRequest:
    """A job that stores a path of all nodes, or of one, as its output."""
    return _request(f'cp -rH -- {shlex.quote(path)} "$TRN_OUTPUT_DIR"', rank, {})


def paths_through_links(files: Iterable[str], links: Mapping[str, str]) -> Mapping[str, str]:
    """The files that symbolic links lead to, by their paths through the links.

    Args:
        files: Paths of files.
        links: Targets by path. A target is relative to the folder of its link.
    """
    known = {name: name for name in files}
    found: dict[str, str] = {}
    for _ in range(_MAX_LINKS_IN_PATH):
        new: dict[str, str] = {}
        for link, target in links.items():
            end = posixpath.normpath(posixpath.join(link, "..", target))
            if end in known:
                new[link] = known[end]
            elif not f"{link}/".startswith(f"{end}/"):
                below = (name for name in known if name.startswith(f"{end}/"))
                new |= {link + name.removeprefix(end): known[name] for name in below}
        if new.keys() <= known.keys():
            break
        found |= {name: file for name, file in new.items() if name not in known}
        known |= found
    return found


def output_folder(path: str, rank: int | None) -> str:
    """The path of copy_from's output in the folder of the job."""
    if rank is None:
        return "outputs"
    name = PurePosixPath(path).name
    return f"outputs/node-{rank}/{name}" if rank else f"outputs/{name}"


def _request(copying: str, rank: int | None, inputs: dict[str, str]) -> JobRequest:
    only = "" if rank is None else f"[ $TRN_NODE_RANK = {rank} ] || exit 0; "
    # A job runs on the first nodes of the membership, so nodes of lower rank take part, and do nothing.
    nodes = None if rank is None else rank + 1
    command = f"{only}{copying}"
    return JobRequest(name=_NAME, command=command, nodes=nodes, inputs=inputs, retries=0, compile_cache=False)
