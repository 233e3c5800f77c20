"""When a checkpoint is complete: over interleavings of saves and looks of several nodes, and by case."""

import zipfile
from pathlib import Path
from typing import NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.userdata.saving_nodes import COPIES, SavingNodes, save
from trn_job.completeness import (
    Content,
    File,
    NodeReports,
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
        self.names: list[set[str]] = [set() for _ in range(NODES)]
        self.seen: list[dict[str, Sighting]] = [{} for _ in range(NODES)]
        self.parts: dict[str, dict[str, Written]] = {}
        self.looked = [0.0] * NODES
        self.killed: set[int] = set()
        self.reports: list[NodeReports] = [NodeReports() for _ in range(NODES)]
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
        self.names[rank].add(self.name)

    @rule(rank=RANKS)
    def write_log(self, rank: int) -> None:
        """Write to an entry beside the checkpoints that nodes share by its name."""
        self.names[rank].add("log")
        self.now += 0.01
        file = File("log/events", int(self.now * 100), int(self.now * 1e9))
        self.disks[rank].setdefault("log", {})["log/events"] = Written(0, True, file)

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
        self.reports[rank] = NodeReports(
            self.looked[rank],
            names=self.names[rank],
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
        for name in {name for node in nodes.values() for name in node.views} - {"log"}:
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


def test_sharded_checkpoint_is_complete_with_parts_of_all_nodes(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 3)
    nodes.save("step-1", 0, 1)
    (nodes.place(2) / "step-0").mkdir()
    save(nodes.place(2), "step-1.tmp")
    nodes.looks()
    assert nodes.complete == {}
    nodes.save("step-1", 2)
    nodes.looks()
    assert nodes.complete == {"step-1": ["1-0-1", "1-1-1", "1-2-1"]}


def test_part_written_in_place_is_replaced_by_the_whole_one(tmp_path: Path) -> None:
    """The case of a shard that one node writes for 80 seconds, with pauses."""
    nodes = SavingNodes(tmp_path, 2)
    save(nodes.place(0), "step-20", **{"__0_0.distcp": "whole"})
    save(nodes.place(1), "step-20", **{"__1_0.distcp": "31 kB"})
    nodes.looks()
    assert nodes.complete == {}
    save(nodes.place(1), "step-20", **{"__1_0.distcp": "81 kB, whole"})
    nodes.look()
    save(nodes.place(0), "step-20", **{".metadata": "all"})
    nodes.looks()
    assert nodes.resumed("step-20", 0) == {"__0_0.distcp": "whole", "__1_0.distcp": "81 kB, whole", ".metadata": "all"}


def test_later_whole_version_replaces_an_earlier_one_while_the_job_runs(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    for text in ("first", "second one"):
        for rank in (0, 1):
            save(nodes.place(rank), "latest", **{f"shard-{rank}": text})
        nodes.looks()
        assert nodes.complete == {"latest": [f"1-{rank}-{1 + (text != 'first')}" for rank in (0, 1)]}


@pytest.mark.parametrize("is_link", [False, True])
def test_pointer_that_leads_to_the_next_checkpoint_stays_with_the_one_before(tmp_path: Path, is_link: bool) -> None:
    nodes, file = SavingNodes(tmp_path, 1), "model" if is_link else "mp_rank_00_model_states.pt"
    pointer = nodes.place(0) / "latest"
    for name in ("step-1", "step-2"):
        save(nodes.place(0), name, **{file: f"weights of {name}"})
        pointer.unlink(missing_ok=True)
        if is_link:
            pointer.symlink_to(name)
        else:
            pointer.write_text(name)
        nodes.look()
    nodes.looks()
    assert sorted(nodes.complete) == ["step-1", "step-2"]
    assert nodes.resumed("step-1", 0) == {file: "weights of step-1"}
    beside = tmp_path / "resumed-0-0/latest"
    assert (str(beside.readlink()) if is_link else beside.read_text()) == "step-1"


def test_node_with_only_a_folder_does_not_count_as_saving_nothing(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-10", 0)
    (nodes.place(1) / "step-10").mkdir()
    nodes.looks()
    assert nodes.complete == {}
    nodes.nodes[0].await_parts(0, lambda: True)
    assert nodes.log_lines == ["checkpoint step-10 is not complete: node 1: its folder has no files", COPIES]
    nodes.end(1, 0)
    nodes.nodes[0].complete_all()
    assert nodes.complete == {"step-10": ["1-0-1"]}


def test_empty_shard_is_never_resumed_from(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-1", 0, 1)
    (nodes.place(1) / "step-1/shard_1").write_text("")
    nodes.looks()
    nodes.end()
    nodes.nodes[0].complete_all()
    assert nodes.complete == {}
    assert nodes.log_lines == ["checkpoint step-1 is not complete: node 1: step-1/shard_1 has 0 bytes", COPIES]


def test_killed_command_leaves_no_checkpoint_that_it_was_writing(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    nodes.save("step-1", 0)
    nodes.looks()
    nodes.save("step-2", 0)
    nodes.end(exit_code=-9)
    assert list(nodes.complete) == ["step-1"]
    nodes.nodes[0].await_parts(0, lambda: True)
    assert nodes.log_lines == [
        "checkpoint step-2 is not complete: node 0: its processes ended soon after they wrote it",
        COPIES,
    ]


@pytest.mark.parametrize("marks", ["renamed", ".metadata", "torch.save"])
def test_killed_command_leaves_checkpoints_with_an_end_mark(tmp_path: Path, marks: str) -> None:
    nodes = SavingNodes(tmp_path, 1)
    place = nodes.place(0)
    if marks == "renamed":
        save(place, ".step-1")
        (place / ".step-1").rename(place / "step-1")
    elif marks == ".metadata":
        save(place, "step-1", **{"__0_0.distcp": "weights", ".metadata": "all"})
    else:
        with zipfile.ZipFile(place / "step-1.pt", "w") as archive:
            archive.writestr("data.pkl", "weights")
    nodes.end(exit_code=-9)
    assert len(nodes.complete) == 1


def test_cut_archive_is_never_resumed_from(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    with zipfile.ZipFile(nodes.place(0) / "step-1.pt", "w") as archive:
        archive.writestr("data.pkl", "weights")
    whole = (nodes.place(0) / "step-1.pt").read_bytes()
    (nodes.place(0) / "step-1.pt").write_bytes(whole[:-30])
    nodes.looks()
    nodes.end()
    nodes.nodes[0].complete_all()
    assert nodes.complete == {}
    assert nodes.log_lines == ["checkpoint step-1.pt is not complete: node 0: step-1.pt is cut off", COPIES]


def test_deletion_in_progress_does_not_replace_the_stored_version(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-1", 0, 1)
    nodes.looks()
    (nodes.place(0) / "step-1/meta").unlink()
    nodes.looks()
    nodes.end(exit_code=-9)
    assert nodes.complete == {"step-1": ["1-0-1", "1-1-1"]}


def test_node_that_has_not_looked_since_may_still_save_its_part(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.look()
    nodes.save("step-1", 0)
    for _ in range(4):
        nodes.look(0)
    assert nodes.complete == {}
    nodes.looks()
    assert nodes.complete == {"step-1": ["1-0-1"]}


def test_node_without_record_leaves_checkpoint_incomplete(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-1", 0)
    for _ in range(4):
        nodes.look(0)
    nodes.nodes[0].await_parts(0, lambda: True)
    assert nodes.complete == {}
    assert nodes.log_lines == ["checkpoint step-1 is not complete: node 1 has no part of it", COPIES]


def test_ended_node_saves_nothing_more(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.end(1)
    nodes.save("step-1", 0)
    nodes.look(0)
    nodes.look(0)
    assert nodes.complete == {"step-1": ["1-0-1"]}


@pytest.mark.parametrize("saved_before", [True, False])
def test_killed_node_may_have_had_a_part_of_the_first_checkpoint(tmp_path: Path, saved_before: bool) -> None:
    nodes = SavingNodes(tmp_path, 2)
    if saved_before:
        nodes.save("step-1", 0)
        nodes.looks()
    nodes.save("step-2", 0)
    nodes.look(0)
    nodes.look(0)
    nodes.end(exit_code=-9)
    assert ("step-2" in nodes.complete) == saved_before


def test_node_without_checkpoints_has_no_part_of_one_renamed_before_the_kill(tmp_path: Path) -> None:
    for unfinished, names in ((False, ["step-1"]), (True, [])):
        nodes = SavingNodes(tmp_path / str(unfinished), 2)
        save(nodes.place(0), ".step-1")
        (nodes.place(0) / ".step-1").rename(nodes.place(0) / "step-1")
        if unfinished:
            save(nodes.place(1), ".step-1")
        nodes.end(exit_code=-9)
        assert list(nodes.complete) == names


def test_parts_of_a_repeated_name_are_not_mixed(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("latest", 0, 1)
    nodes.look()
    nodes.look(1)
    save(nodes.place(1), "latest", shard_1="of a later step")
    nodes.end(exit_code=-9)
    nodes.nodes[0].await_parts(0, lambda: True)
    assert nodes.complete == {}
