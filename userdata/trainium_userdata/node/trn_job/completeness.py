"""Decides when a checkpoint is complete: whole on all nodes at one moment. See docs/guides/jobs.md for the rule."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from trainium_wire.job import part_version

CLOCK_MARGIN_SECONDS = 2
"""The assumed maximum difference between the synchronised clocks of two nodes."""


class CheckpointLayout(NamedTuple):
    """How a library marks the end of a save.

    Attributes:
        files: The names of its files, from the folder of checkpoints on, with the group `folder`.
        mark: The file that it writes last, below the group `folder`.
        ends_all: Whether the library writes it after every process has written its files.
    """

    files: re.Pattern[str]
    mark: str
    ends_all: bool


LAYOUTS = (
    # torch.distributed.checkpoint and FSDP (torch 2.13.0, FileSystemWriter.finish, which the coordinator calls with the
    # results of all ranks).
    CheckpointLayout(re.compile(r"(?P<folder>.*/)[^/]+\.distcp"), ".metadata", ends_all=True),
    # Lightning's FSDP and model-parallel strategies (lightning 2.6.6), after torch.distributed.checkpoint.
    CheckpointLayout(re.compile(r"(?P<folder>.*\.ckpt/)[^/]+\.distcp"), "meta.pt", ends_all=False),
    # neuronx_distributed.trainer.save_checkpoint (commit 4596e71b), after a rendezvous.
    CheckpointLayout(
        re.compile(r"(?P<folder>.*/)(checkpoint|(model|optim)/dp_rank_\d+_tp_rank_\d+_pp_rank_\d+\.pt.*)"),
        "done",
        ends_all=True,
    ),
    # transformers.Trainer (transformers 5.24.0, _save_checkpoint). Other processes may still write their rng_state.
    CheckpointLayout(
        re.compile(r"(?P<folder>(.*/)?checkpoint-\d+/)(training_args\.bin|rng_state(_\d+)?\.pth)"),
        "trainer_state.json",
        ends_all=False,
    ),
    # DeepSpeed (0.19.8, DeepSpeedEngine.save_checkpoint), beside the folder. The barrier follows it.
    CheckpointLayout(re.compile(r"(?P<folder>(.*/)?)[^/]+/[^/]*(model|optim)_states\.pt"), "latest", ends_all=False),
)
POINTER = "latest"
"""The file of DeepSpeed and others beside a checkpoint, with its name. It is stored with that checkpoint."""

_MARKS = frozenset(layout.mark for layout in LAYOUTS)
_EMPTY_ON_PURPOSE = re.compile(r"(.*/)?(\.[^./]+|.*\.(lock|py)|(.*[._-])?(done|complete|completed|success))", re.I)
"""Files that may have 0 bytes: marks, locks, and modules of Python."""


class File(NamedTuple):
    """A file or a symbolic link of a checkpoint.

    Attributes:
        name: Its path below the folder of checkpoints.
        size: Size in bytes.
        modified: Time of its last change in nanoseconds.
        target: The target of a link, relative to the folder of the link; empty for a file.
    """

    name: str
    size: int
    modified: int
    target: str = ""

    @property
    def is_pointer(self) -> bool:
        """Whether it is beside the checkpoint, and the script changes it with the next one."""
        return self.name == POINTER or (bool(self.target) and "/" not in self.name)


class Content(NamedTuple):
    """What a node finds at the path of a checkpoint.

    Attributes:
        files: Its files, sorted. Empty if there is a folder without files.
        is_finished: Whether its own form shows that it is whole: it was renamed into place, or it is one file that has
            the end of its format.
        problem: Why it cannot be whole; empty if it can.
    """

    files: tuple[File, ...]
    is_finished: bool = False
    problem: str = ""


class Sighting(NamedTuple):
    """A content, and how long a node has seen it unchanged.

    Attributes:
        content: The content.
        since: The end of the first look that found it.
        looked: The start of the last look that found it.
        is_settled: Whether it was unchanged at a further look while the command ran.
        is_deleted: Whether the script has deleted files of it since.
        steady: The files that were unchanged at the last look.
        part: The name of the part with this content in S3; empty until it is stored.
    """

    content: Content
    since: float
    looked: float
    is_settled: bool = False
    is_deleted: bool = False
    steady: frozenset[File] = frozenset()
    part: str = ""


def sighting(
    before: Sighting | None, content: Content, began: float, ended: float, *, settle_seconds: float, is_running: bool
) -> Sighting:
    """What a node has seen of a checkpoint after another look.

    Args:
        before: What it had seen before.
        content: What it finds now.
        began, ended: The time of the look.
        settle_seconds: Minimum time between the looks that find a settled checkpoint.
        is_running: Whether the command may still write.
    """
    files = frozenset(content.files)
    if before is None:
        return Sighting(content, ended, began)
    known = frozenset(before.content.files)
    if files and files == frozenset(file for file in known if not file.is_pointer):
        # Pointers lead to a later checkpoint now.
        files = known
    if files == known:
        is_settled = before.is_settled or (is_running and began - before.since >= settle_seconds)
        is_finished = content.is_finished or before.content.is_finished
        same = before.content._replace(is_finished=is_finished)
        return before._replace(content=same, looked=began, is_settled=is_settled, steady=files)
    if files < known and not before.content.problem:
        # The script deletes the checkpoint. What is stored stays; a remainder is not a checkpoint.
        if before.part:
            return before._replace(is_deleted=True)
        return Sighting(
            content._replace(problem="the script deleted files of it before they were stored"), ended, began
        )
    gone = sorted({file.name for file in known if needed_marks(file.name)} - {file.name for file in files})
    if gone and files and not content.problem:
        content = content._replace(problem=f"the script deleted {gone[0]}")
    return Sighting(content, ended, began, steady=files & known)


class View(NamedTuple):
    """A node's part of a checkpoint, as node 0 judges it. Times are in seconds.

    Attributes:
        part, since, looked, is_settled, is_deleted, is_finished, problem: As in Sighting and Content.
        is_empty: Whether the node has only a folder.
        needs: The end marks that the node's files call for, with the time of the last change of these files.
        marks: The end marks that the node has, with the times of their last change.
    """

    part: str
    since: float
    looked: float
    is_settled: bool
    is_deleted: bool
    is_finished: bool
    problem: str
    is_empty: bool
    needs: Mapping[str, float]
    marks: Mapping[str, float]

    @property
    def is_marked(self) -> bool:
        """Whether the end marks that its files call for show that these files are whole, once the marks exist."""
        return any(_ends_all(mark) for mark in self.needs) or (
            bool(self.needs) and self.needs.keys() <= self.marks.keys()
        )


def view(seen: Sighting, of_others: Collection[File] = ()) -> View:
    """The report of a node on a checkpoint.

    Args:
        seen: What the node has seen.
        of_others: Files of the checkpoint that the job resumed from which only other nodes have saved. This node never
            renews their end marks.
    """
    files = seen.content.files
    needs: dict[str, float] = {}
    for file in files:
        for mark in needed_marks(file.name):
            needs[mark] = max(needs.get(mark, 0), file.modified / 1e9)
    own = [file for file in files if file.size and file not in of_others]
    marks = {file.name: file.modified / 1e9 for file in own if file.name.rpartition("/")[2] in _MARKS}
    return View(
        part=seen.part,
        since=seen.since,
        looked=seen.looked,
        is_settled=seen.is_settled,
        is_deleted=seen.is_deleted,
        is_finished=seen.content.is_finished,
        problem=seen.content.problem,
        is_empty=not files,
        needs=needs,
        marks=marks,
    )


def needed_marks(name: str) -> list[str]:
    """The end marks that a file with this name calls for."""
    found = ((layout, layout.files.fullmatch(name)) for layout in LAYOUTS)
    return [f"{match['folder']}{layout.mark}" for layout, match in found if match]


def _ends_all(mark: str) -> bool:
    return any(layout.ends_all and layout.mark == mark.rpartition("/")[2] for layout in LAYOUTS)


def is_temporary(name: str) -> bool:
    """Whether an entry of the checkpoint folder is an unfinished save, by its name."""
    return name.startswith(".") or name.endswith(".tmp")


def series(name: str) -> str:
    """The name of a checkpoint without its numbers: what the checkpoints of a training have in common."""
    return re.sub(r"\d+", "#", name)


def alike(name: str, names: Collection[str]) -> set[str]:
    """Names of the series of a checkpoint, also temporary ones that contain its name."""
    own = series(name)
    if not any(map(str.isalpha, own)):
        return {each for each in names if series(each).lstrip(".").removesuffix(".tmp") == own}
    return {each for each in names if own in series(each)}


def problem(files: tuple[File, ...]) -> str:
    """Why files cannot be a whole checkpoint, by their names and sizes; empty if they can."""
    for file in files:
        if file.name.endswith(".tmp"):
            return f"{file.name} is temporary"
        if not file.size and not file.target and not _EMPTY_ON_PURPOSE.fullmatch(file.name):
            return f"{file.name} has 0 bytes"
    return ""


class NodeReports(NamedTuple):
    """What a node has reported.

    Attributes:
        looked: The time of its last look at its folder of checkpoints while its command ran.
        names: The names that it has ever made in this folder, without the checkpoint that the job resumed from. None:
            unknown.
        is_over: Whether its processes have ended, and it stores nothing more.
        ended_well: Whether, in addition, its command ended with 0.
        views: Its parts by name of the checkpoint.
        saves_nothing: The series of which a checkpoint was complete without a part of it.
    """

    looked: float = 0
    names: Collection[str] | None = None
    is_over: bool = False
    ended_well: bool = False
    views: Mapping[str, View] = {}
    saves_nothing: Collection[str] = ()

    @classmethod
    def from_record(cls, raw: Mapping[str, Any], *, is_over: bool) -> NodeReports:
        """Parse the report of a node, which may be missing."""
        views = {name: View(**each) for name, each in raw.get("views", {}).items()}
        return cls(
            looked=raw.get("looked", 0),
            names=raw.get("names"),
            is_over=is_over,
            ended_well=is_over and bool(raw.get("ended_well")),
            views=views,
        )

    def takes_part(self, name: str) -> bool:
        """Whether it saves checkpoints of this series."""
        return self.names is None or bool(alike(name, self.names))


def why_incomplete(name: str, nodes: Mapping[int, NodeReports], *, settle_seconds: float) -> str:
    """Why a checkpoint is not complete; empty if it was whole on all nodes at one moment.

    Args:
        name: The name of the checkpoint.
        nodes: The reports of all nodes by rank.
        settle_seconds: How long a part must be unchanged on all nodes.
    """
    views = {rank: node.views[name] for rank, node in nodes.items() if name in node.views}
    views = {rank: each for rank, each in views.items() if not (each.is_empty and nodes[rank].ended_well)}
    for rank, each in views.items():
        if each.is_empty or each.problem:
            return f"node {rank}: {each.problem or 'its folder has no files'}"
    for mark in sorted({mark for each in views.values() for mark in each.needs}):
        reason = _why_unmarked(mark, views)
        if reason:
            return reason
    for rank, each in views.items():
        is_shown = nodes[rank].ended_well or each.is_finished or each.is_marked
        is_trusted = nodes[rank].is_over and not each.is_deleted and is_shown
        if not each.is_settled and not is_trusted:
            ended = "its processes ended soon after they wrote it" if nodes[rank].is_over else "it still changes"
            return f"node {rank}: {ended}"
        if not each.part:
            return f"node {rank}: it is not stored"
    return _why_never_at_once(name, nodes, views, settle_seconds)


def _have_own_names(name: str, nodes: Mapping[int, NodeReports]) -> bool:
    """Whether all nodes have ended well, and each has saved checkpoints of this series under its own names."""
    if not all(node.ended_well and node.names is not None for node in nodes.values()):
        return False
    names = [each for node in nodes.values() for each in alike(name, node.names or ())]
    return len(names) == len(set(names))


def _why_unmarked(mark: str, views: Mapping[int, View]) -> str:
    written = [each.marks[mark] for each in views.values() if mark in each.marks]
    if not written:
        return f"{mark} is missing"
    for rank, each in views.items():
        own = each.marks.get(mark)
        if own is None and not _ends_all(mark):
            continue
        if each.needs.get(mark, 0) > (max(written) + CLOCK_MARGIN_SECONDS if own is None else own):
            return f"node {rank}: files are newer than {mark}"
    return ""


def _why_never_at_once(
    name: str, nodes: Mapping[int, NodeReports], views: Mapping[int, View], settle_seconds: float
) -> str:
    """Why there was no moment at which all nodes had their parts."""
    if not views:
        return "no node has files of it"
    # Saves under the same name differ, so parts that were not there at the same time may be of different steps.
    is_repeated = not re.search(r"\d", name) or any(part_version(each.part) > 1 for each in views.values())
    is_marked = any(_ends_all(mark) for each in views.values() for mark in each.needs)
    is_shown = is_marked or (len(views) == 1 and all(each.is_finished for each in views.values()))
    since = max(each.since for each in views.values())
    own_names = _have_own_names(name, nodes)
    for rank, node in nodes.items():
        each = views.get(rank)
        if each is None:
            if node.takes_part(name) and not own_names and name not in node.views:
                return f"node {rank} has no part of it"
            is_nothing = node.ended_well or series(name) in node.saves_nothing or is_shown
            until = float("inf") if node.is_over and is_nothing else node.looked
        else:
            is_final = node.ended_well or not is_repeated or any(map(_ends_all, each.needs)) or len(views) == 1
            is_final &= node.is_over and not each.is_deleted
            until = float("inf") if is_final else each.looked
        if len(nodes) > 1 and until - since < settle_seconds + CLOCK_MARGIN_SECONDS:
            return f"node {rank} has not had its part at the same time as the other nodes"
    return ""
