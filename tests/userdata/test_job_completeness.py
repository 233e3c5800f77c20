"""When a checkpoint is complete, over interleavings of saves and looks of several nodes."""

from typing import NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from trn_job.completeness import (
    Content,
    File,
    Node,
    Sighting,
    problem,
    sighting,
    view,
    why_incomplete,
)

NODES = 3
RANKS = st.integers(0, NODES - 1)
SETTLE_SECONDS = 15
EXAMPLES = 60
BETWEEN_SAVES_SECONDS = 5
"""More than the assumed difference of two clocks."""


class Written(NamedTuple):
    """A file as the script has written it: of which save, and whether it is whole."""

    save: int
    is_whole: bool
    file: File


class SavingJob(RuleBasedStateMachine):
    """A job whose nodes save the same checkpoints in place, and look at their folders at any time."""

    shard, mark = "shard-{}", ""
    same_name = False

    @initialize()
    def begin(self) -> None:
        self.now, self.save, self.saved_at = 1000.0, 0, 0.0
        self.disks: list[dict[str, dict[str, Written]]] = [{} for _ in range(NODES)]
        self.seen: list[dict[str, Sighting]] = [{} for _ in range(NODES)]
        self.parts: dict[str, dict[str, Written]] = {}
        self.looked = [0.0] * NODES
        self.killed: set[int] = set()
        self.reports: list[Node] = [Node() for _ in range(NODES)]
        self.writing: set[int] = set()
        self.is_saving = False

    @property
    def name(self) -> str:
        return "latest" if self.same_name else f"step-{self.save}"

    def write(self, rank: int, file: str, *, is_whole: bool) -> None:
        folder, name = self.disks[rank].setdefault(self.name, {}), f"{self.name}/{file}"
        size = folder[name].file.size + 1 if name in folder else 1
        self.now += 0.01
        folder[name] = Written(self.save, is_whole, File(name, size, int(self.now * 1e9)))

    @precondition(lambda self: not self.is_saving and self.now > self.saved_at + BETWEEN_SAVES_SECONDS)
    @precondition(lambda self: not self.killed)
    @rule()
    def begin_save(self) -> None:
        self.save += 1
        self.is_saving, self.writing = True, set(range(NODES))

    @precondition(lambda self: self.is_saving)
    @rule(rank=RANKS)
    def continue_save(self, rank: int) -> None:
        if rank in self.writing - self.killed:
            self.write(rank, self.shard.format(rank), is_whole=False)

    @precondition(lambda self: self.is_saving)
    @rule(rank=RANKS)
    def finish_shard(self, rank: int) -> None:
        if rank in self.writing - self.killed:
            self.write(rank, self.shard.format(rank), is_whole=True)
            self.writing.discard(rank)

    @precondition(lambda self: self.is_saving and not self.writing and 0 not in self.killed)
    @rule()
    def finish_save(self) -> None:
        if self.mark:
            self.write(0, self.mark, is_whole=True)
        self.is_saving, self.saved_at = False, self.now

    @rule(rank=RANKS, file=st.integers(0, 1))
    def delete(self, rank: int, file: int) -> None:
        """Delete a file of a finished save that a look has found, as the rotation of checkpoints does."""
        seen = self.seen[rank].get(self.name)
        found = {each.name for each in seen.content.files} if seen else set[str]()
        names = sorted(found & self.disks[rank].get(self.name, {}).keys())
        if not self.is_saving and rank not in self.killed and file < len(names):
            del self.disks[rank][self.name][names[file]]

    @rule(rank=RANKS)
    def kill(self, rank: int) -> None:
        self.killed.add(rank)

    @rule(seconds=st.sampled_from([1, 5, 20, 60]))
    def advance(self, seconds: int) -> None:
        self.now += seconds

    @rule(rank=RANKS)
    def look(self, rank: int) -> None:
        began = self.now
        self.now += 0.01
        for name, folder in self.disks[rank].items():
            files = tuple(sorted(written.file for written in folder.values()))
            before = self.seen[rank].get(name)
            seen = sighting(
                before,
                Content(files, problem=problem(files)),
                began,
                self.now,
                settle_seconds=SETTLE_SECONDS,
                is_running=rank not in self.killed,
            )
            if not seen.part and files:
                part = f"1-{rank}-{1 + sum(each.startswith(f'1-{rank}-') for each in self.parts)}"
                self.parts[part] = dict(folder)
                seen = seen._replace(part=part)
            self.seen[rank][name] = seen
        if rank not in self.killed:
            self.looked[rank] = began
        self.reports[rank] = Node(
            self.looked[rank],
            holds=bool(self.seen[rank]),
            is_over=rank in self.killed,
            views={name: view(seen) for name, seen in self.seen[rank].items()},
        )

    @rule()
    def all_look(self) -> None:
        for rank in reversed(range(NODES)):
            self.look(rank)

    @rule()
    def decide(self) -> None:
        nodes = dict(enumerate(self.reports))
        for name in {name for node in nodes.values() for name in node.views}:
            if why_incomplete(name, nodes, settle_seconds=SETTLE_SECONDS):
                continue
            files = {
                file: written
                for node in nodes.values()
                if name in node.views
                for file, written in self.parts[node.views[name].part].items()
            }
            expected = {self.shard.format(rank) for rank in range(NODES)} | ({self.mark} if self.mark else set[str]())
            assert files.keys() == {f"{name}/{file}" for file in expected}, "a part is missing"
            assert all(written.is_whole for written in files.values()), "a part is torn"
            assert len({written.save for written in files.values()}) == 1, "parts are of several saves"


class Marked(SavingJob):
    """With a library that marks the end, processes may pause as long as they like."""

    shard, mark = "__{}_0.distcp", ".metadata"


class MarkedAgain(Marked):
    same_name = True


class Unmarked(SavingJob):
    """Without a mark, processes save at the same time, and write at least every few seconds."""

    @rule(seconds=st.sampled_from([1, 5, 20, 60]))
    def advance(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1
            for rank in self.writing - self.killed:
                self.write(rank, self.shard.format(rank), is_whole=False)


class UnmarkedAgain(Unmarked):
    same_name = True


@pytest.mark.parametrize("job", [Marked, MarkedAgain, Unmarked, UnmarkedAgain])
def test_incomplete_state_is_never_complete(job: type[SavingJob]) -> None:
    run_state_machine_as_test(job, settings=settings(max_examples=EXAMPLES, stateful_step_count=50, deadline=None))
