"""Checkpoints of a job: the parts of each node, and when the whole is complete."""

import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.job_parts import MemoryStore, launch
from trn_job import checkpoints
from trn_job.checkpoints import CheckpointError, Checkpoints


def save(folder: Path, name: str, **files: str) -> None:
    for file, text in (files or {"model": "weights"}).items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class SavingNodes:
    """The checkpoint folders of a job's nodes, and the lines in their logs."""

    def __init__(self, folder: Path, nodes: int, **spec: Any) -> None:
        self.store, self.folder, self.log_lines, self.now = MemoryStore(), folder, list[str](), 1e6
        store: Any = self.store
        self.launches = [launch(rank, nodes, **spec) for rank in range(nodes)]
        self.nodes = [
            Checkpoints(each, store, self.place(each.rank), self.log_lines.append, lambda: self.now)
            for each in self.launches
        ]
        for node in self.nodes:
            node.begin_running()

    def place(self, rank: int) -> Path:
        place = self.folder / f"node-{rank}"
        place.mkdir(parents=True, exist_ok=True)
        return place

    def save(self, name: str, *ranks: int) -> None:
        for rank in ranks:
            save(self.place(rank), name, **{"meta": f"of {rank}", f"shard_{rank}": f"weights {rank}"})

    def look(self, *ranks: int, state: str = "running") -> None:
        """Let nodes, by default all of them, look at their folders and write their records. Node 0 is the last."""
        self.now += 20
        for rank in reversed(ranks or range(len(self.nodes))):
            self.nodes[rank].upload()
            self.store.objects[self.launches[rank].keys.node(rank)] = {
                "state": state,
                "checkpoints": self.nodes[rank].as_record(),
            }

    def looks(self) -> None:
        """As many looks of all nodes as a checkpoint needs at most that no longer changes."""
        for _ in range(4):
            self.look()

    def end(self, *ranks: int, exit_code: int | None = 0) -> None:
        """Let the commands of nodes, by default of all of them, end."""
        for rank in ranks or range(len(self.nodes)):
            self.nodes[rank].end_running(exit_code)
        self.look(*ranks, state="failed" if exit_code else "succeeded")

    @property
    def complete(self) -> dict[str, list[str]]:
        """The parts of complete checkpoints, which have a manifest."""
        prefix, found = "job/checkpoints/", dict[str, list[str]]()
        for key, content in self.store.objects.items():
            if key.startswith(prefix) and "/" not in key.removeprefix(prefix):
                found[content["name"]] = content["parts"]
        return found

    def resumed(self, name: str, rank: int, **spec: Any) -> dict[str, str]:
        """The texts of the files that a node downloads, by path."""
        folder = self.folder / f"resumed-{rank}-{len(spec)}"
        store: Any = self.store
        resuming = launch(rank, len(self.nodes), **spec)._replace(resume_from=name)
        place = checkpoints.download(resuming, store, folder)
        return {str(file.relative_to(place)): file.read_text() for file in place.rglob("*") if file.is_file()}


def test_manifest_follows_the_files_and_names_their_parts(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    save(nodes.place(0), "step-1")
    nodes.looks()
    files = [
        "job/checkpoints/step-1/1-0-1/step-1/model",
        "job/checkpoints/step-1/1-0-1.json",
        "job/checkpoints/step-1.json",
    ]
    assert [key for key in nodes.store.objects if "/checkpoints/" in key] == files
    manifest = nodes.store.objects["job/checkpoints/step-1.json"]
    assert (manifest["name"], manifest["world_size"], manifest["nodes"], manifest["parts"]) == (
        "step-1",
        1,
        1,
        ["1-0-1"],
    )


def test_interrupted_upload_continues_where_it_stopped(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    store: Any = nodes.store
    save(nodes.place(0), "step-1", **{f"shard-{number}": str(number) for number in range(100)})
    upload, uploaded = store.upload, list[str]()

    def refuse(key: str, *rest: Any) -> None:
        if len(uploaded) == 40:
            raise OSError("refused")
        uploaded.append(key)
        upload(key, *rest)

    store.upload = refuse
    nodes.look()
    with pytest.raises(OSError, match="refused"):
        nodes.look()
    assert nodes.complete == {}
    again = list[str]()

    def accept(key: str, *rest: Any) -> None:
        again.append(key)
        upload(key, *rest)

    store.upload = accept
    nodes.looks()
    assert nodes.complete == {"step-1": ["1-0-1"]}
    assert (len(again), set(again) & set(uploaded)) == (60, set())


def test_files_are_uploaded_at_the_same_time(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    store: Any = nodes.store
    save(nodes.place(0), "step-1", **{f"shard-{number}": "weights" for number in range(16)})
    upload, together = store.upload, threading.Barrier(8)

    def wait_for_others(*arguments: Any) -> None:
        together.wait(timeout=60)
        upload(*arguments)

    store.upload = wait_for_others
    nodes.looks()
    assert nodes.complete == {"step-1": ["1-0-1"]}


def test_checkpoint_changed_during_upload_gets_no_manifest(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    store: Any = nodes.store
    save(nodes.place(0), "step-1")
    upload = store.upload

    def change(key: str, file: Path, digest: str) -> None:
        upload(key, file, digest)
        file.write_text(file.read_text() + " and more")

    store.upload = change
    nodes.looks()
    assert nodes.complete == {}


def test_checkpoint_that_still_grows_is_not_uploaded(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    for size in range(1, 5):
        save(nodes.place(0), "step-1", model="w" * size, config="same")
        nodes.look()
    assert [key for key in nodes.store.objects if key.endswith("/model")] == []
    assert nodes.complete == {}
    nodes.looks()
    assert nodes.resumed("step-1", 0) == {"model": "wwww", "config": "same"}


def test_checkpoint_saved_again_does_not_change_the_stored_one(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    for text in ("first", "second one"):
        (nodes.place(0) / "latest.pt").write_text(text)
        nodes.looks()
    assert nodes.store.objects["job/checkpoints/latest.pt/1-0-1/latest.pt"] == b"first"
    store: Any = nodes.store
    resumed = checkpoints.download(launch()._replace(resume_from="latest.pt"), store, tmp_path / "resume")
    assert (resumed, resumed.read_text()) == (tmp_path / "resume/latest.pt", "second one")


def test_changed_checkpoint_file_is_never_resumed_from(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    save(nodes.place(0), "step-1")
    nodes.looks()
    nodes.store.objects["job/checkpoints/step-1/1-0-1/step-1/model"] = b"torn"
    with pytest.raises(CheckpointError, match="the file step-1/model of checkpoint step-1 of job job is not the one"):
        nodes.resumed("step-1", 0)


@pytest.mark.parametrize("path", ["..", "../elsewhere", "/etc/cron.d", "step-1/../../x", "other/model"])
def test_checkpoint_files_stay_in_their_folder(tmp_path: Path, path: str) -> None:
    nodes = SavingNodes(tmp_path, 1)
    save(nodes.place(0), "step-1")
    nodes.looks()
    nodes.store.objects["job/checkpoints/step-1/1-0-1.json"]["files"] = {path: {"size": 1, "sha256": ""}}
    with pytest.raises(CheckpointError, match="lacks its file"):
        nodes.resumed("step-1", 0)


def test_checkpoint_without_manifest_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no complete checkpoint step-1 of job job"):
        SavingNodes(tmp_path, 1).resumed("step-1", 0)


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


def test_node_with_only_a_folder_does_not_count_as_saving_nothing(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-10", 0)
    (nodes.place(1) / "step-10").mkdir()
    nodes.looks()
    assert nodes.complete == {}
    nodes.nodes[0].await_parts(0, lambda: True)
    assert nodes.log_lines == ["checkpoint step-10 is not complete: node 1: its folder has no files"]
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
    assert nodes.log_lines == ["checkpoint step-1 is not complete: node 1: step-1/shard_1 has 0 bytes"]


def test_killed_command_leaves_no_checkpoint_that_it_was_writing(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    nodes.save("step-1", 0)
    nodes.looks()
    nodes.save("step-2", 0)
    nodes.end(exit_code=-9)
    assert list(nodes.complete) == ["step-1"]
    nodes.nodes[0].await_parts(0, lambda: True)
    assert nodes.log_lines == [
        "checkpoint step-2 is not complete: node 0: its processes ended soon after they wrote it"
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
    assert nodes.log_lines == ["checkpoint step-1.pt is not complete: node 0: step-1.pt is cut off"]


def test_deletion_in_progress_does_not_replace_the_stored_version(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-1", 0, 1)
    nodes.looks()
    (nodes.place(0) / "step-1/meta").unlink()
    nodes.looks()
    nodes.end(exit_code=-9)
    assert nodes.complete == {"step-1": ["1-0-1", "1-1-1"]}


def test_deepspeed_checkpoint_has_its_latest_file(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    for step in (1, 2):
        save(nodes.place(0), f"global_step{step}", **{"mp_rank_00_model_states.pt": f"weights {step}"})
        nodes.looks()
        assert len(nodes.complete) == step - 1
        (nodes.place(0) / "latest").write_text(f"global_step{step}")
        nodes.looks()
    assert nodes.complete == {"global_step1": ["1-0-1"], "global_step2": ["1-0-1"]}
    for step in (1, 2):
        nodes.resumed(f"global_step{step}", 0)
        assert (tmp_path / "resumed-0-0/latest").read_text() == f"global_step{step}"


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
    assert nodes.log_lines == ["checkpoint step-1 is not complete: node 1 has no part of it"]


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


def test_checkpoints_named_by_node_are_all_kept(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    for rank in (0, 1):
        nodes.save(f"rank-{rank}", rank)
    nodes.looks()
    assert nodes.complete == {}
    nodes.end(1, 0)
    nodes.nodes[0].complete_all()
    assert nodes.complete == {"rank-0": ["1-0-1"], "rank-1": ["1-1-1"]}


def test_shard_deleted_before_its_upload_is_missing(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-2", 0, 1)
    nodes.looks()
    nodes.save("step-1", 0)
    nodes.looks()
    nodes.end(1, 0)
    nodes.nodes[0].complete_all()
    assert list(nodes.complete) == ["step-2"]
    assert nodes.log_lines == ["checkpoint step-1 is not complete: node 1 has no part of it"]


@pytest.mark.parametrize(
    ("resume_files", "files"),
    [("all", {"meta", "shard_0", "shard_1", "shard_2"}), ("own", {"meta", "shard_0", "shard_1"})],
)
def test_node_resumes_from_all_shards_or_its_own(tmp_path: Path, resume_files: str, files: set[str]) -> None:
    nodes = SavingNodes(tmp_path, 3)
    nodes.save("step-1", 0, 1, 2)
    nodes.looks()
    found = nodes.resumed("step-1", 1, resume_files=resume_files)
    assert found.keys() == files
    assert found["meta"] == "of 1"


def test_missing_shard_is_named(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-1", 0, 1)
    nodes.looks()
    del nodes.store.objects["job/checkpoints/step-1/1-1-1.json"]
    with pytest.raises(CheckpointError, match="checkpoint step-1 of job job lacks the part of node 1"):
        nodes.resumed("step-1", 0)


def test_checkpoint_of_the_resumed_job_is_not_stored_again(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-1", 0, 1)
    for rank in (0, 1):
        nodes.nodes[rank].add_resumed(nodes.place(rank) / "step-1")
    nodes.looks()
    assert (nodes.complete, nodes.nodes[1].as_record()["holds"]) == ({}, False)
    nodes.save("step-2", 0)
    nodes.looks()
    assert nodes.complete == {"step-2": ["1-0-1"]}
