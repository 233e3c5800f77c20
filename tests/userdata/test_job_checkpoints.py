"""Checkpoints of a job: the parts of each node, and when the whole is complete."""

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
        self.store, self.folder, self.log_lines = MemoryStore(), folder, list[str]()
        store: Any = self.store
        self.launches = [launch(rank, nodes, **spec) for rank in range(nodes)]
        self.nodes = [Checkpoints(each, store, self.place(each.rank), self.log_lines.append) for each in self.launches]

    def place(self, rank: int) -> Path:
        place = self.folder / f"node-{rank}"
        place.mkdir(exist_ok=True)
        return place

    def save(self, name: str, *ranks: int) -> None:
        for rank in ranks:
            save(self.place(rank), name, **{"meta": f"of {rank}", f"shard_{rank}": f"weights {rank}"})

    def look(self, *ranks: int, state: str = "running", looked: float | None = None) -> None:
        """Let nodes, by default all of them, look at their folders and write their records. Node 0 is the last."""
        for rank in reversed(ranks or range(len(self.nodes))):
            self.nodes[rank].upload()
            report = self.nodes[rank].as_record()
            self.store.objects[self.launches[rank].keys.node(rank)] = {
                "state": state,
                "checkpoints": {**report, "looked": report["looked"] if looked is None else looked},
            }

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


LATER = 1e12
"""The time of a look after all other events."""


def test_manifest_follows_the_files_and_names_their_parts(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    save(nodes.place(0), "step-1")
    nodes.nodes[0].upload()
    files = [
        "job/checkpoints/step-1/1-0-1/step-1/model",
        "job/checkpoints/step-1/1-0-1.json",
        "job/checkpoints/step-1.json",
    ]
    assert list(nodes.store.objects) == files
    manifest = nodes.store.objects["job/checkpoints/step-1.json"]
    assert (manifest["name"], manifest["world_size"], manifest["nodes"], manifest["parts"]) == (
        "step-1",
        1,
        1,
        ["1-0-1"],
    )


def test_interrupted_upload_leaves_no_manifest_and_is_repeated(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    store: Any = nodes.store
    save(nodes.place(0), "step-1")
    upload = store.upload

    def refuse(*_: object) -> None:
        raise OSError("refused")

    store.upload = refuse
    with pytest.raises(OSError, match="refused"):
        nodes.nodes[0].upload()
    assert store.objects == {}
    store.upload = upload
    nodes.nodes[0].upload()
    assert nodes.complete == {"step-1": ["1-0-1"]}


def test_checkpoint_changed_during_upload_gets_no_manifest(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    store: Any = nodes.store
    save(nodes.place(0), "step-1")
    upload = store.upload

    def change(key: str, file: Path, digest: str) -> None:
        upload(key, file, digest)
        file.write_text("other weights")

    store.upload = change
    nodes.nodes[0].upload()
    assert nodes.complete == {}


def test_checkpoint_saved_again_does_not_change_the_stored_one(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    for text in ("first", "second one"):
        (nodes.place(0) / "latest.pt").write_text(text)
        nodes.nodes[0].upload()
    assert nodes.store.objects["job/checkpoints/latest.pt/1-0-1/latest.pt"] == b"first"
    store: Any = nodes.store
    resumed = checkpoints.download(launch()._replace(resume_from="latest.pt"), store, tmp_path / "resume")
    assert (resumed, resumed.read_text()) == (tmp_path / "resume/latest.pt", "second one")


def test_changed_checkpoint_file_is_never_resumed_from(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    save(nodes.place(0), "step-1")
    nodes.nodes[0].upload()
    nodes.store.objects["job/checkpoints/step-1/1-0-1/step-1/model"] = b"torn"
    with pytest.raises(CheckpointError, match="the file step-1/model of checkpoint step-1 of job job is not the one"):
        nodes.resumed("step-1", 0)


@pytest.mark.parametrize("path", ["..", "../elsewhere", "/etc/cron.d", "step-1/../../x", "other/model"])
def test_checkpoint_files_stay_in_their_folder(tmp_path: Path, path: str) -> None:
    nodes = SavingNodes(tmp_path, 1)
    save(nodes.place(0), "step-1")
    nodes.nodes[0].upload()
    nodes.store.objects["job/checkpoints/step-1/1-0-1.json"]["files"] = {path: {"size": 1, "sha256": ""}}
    with pytest.raises(CheckpointError, match="lacks its file"):
        nodes.resumed("step-1", 0)


def test_checkpoint_without_manifest_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no complete checkpoint step-1 of job job"):
        SavingNodes(tmp_path, 1).resumed("step-1", 0)


def test_sharded_checkpoint_is_complete_with_parts_of_all_nodes(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 3)
    nodes.save("step-1", 0, 1)
    save(nodes.place(2), "step-1.tmp")
    nodes.look(looked=LATER)
    assert nodes.complete == {}
    nodes.save("step-1", 2)
    nodes.look(looked=LATER)
    assert nodes.complete == {"step-1": ["1-0-1", "1-1-1", "1-2-1"]}


def test_node_that_has_not_looked_since_may_still_save_its_part(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.look()
    nodes.save("step-1", 0)
    nodes.look(0)
    assert nodes.complete == {}
    nodes.look(looked=LATER)
    assert nodes.complete == {"step-1": ["1-0-1"]}


def test_node_without_record_leaves_checkpoint_incomplete(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-1", 0)
    nodes.look(0)
    nodes.nodes[0].await_parts(0, lambda: True)
    assert nodes.complete == {}
    assert nodes.log_lines == ["checkpoint step-1 is not complete: parts of other nodes are missing"]


def test_ended_node_saves_nothing_more(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.look(1, state="ended")
    nodes.save("step-1", 0)
    nodes.look(0)
    assert nodes.complete == {"step-1": ["1-0-1"]}


def test_parts_of_a_repeated_name_are_not_mixed(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("latest", 0, 1)
    nodes.look(1)
    save(nodes.place(1), "latest", shard_1="of a later step")
    nodes.look(looked=LATER)
    assert nodes.complete == {}
    nodes.nodes[0].complete_all()
    assert nodes.complete == {"latest": ["1-0-1", "1-1-2"]}


def test_checkpoints_named_by_node_are_all_kept(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    for rank in (0, 1):
        nodes.save(f"rank-{rank}", rank)
    nodes.look(looked=LATER)
    assert nodes.complete == {}
    nodes.nodes[0].complete_all()
    assert nodes.complete == {"rank-0": ["1-0-1"], "rank-1": ["1-1-1"]}


def test_shard_deleted_before_its_upload_is_missing(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-2", 0, 1)
    nodes.look(looked=LATER)
    nodes.save("step-1", 0)
    nodes.look(looked=LATER)
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
    nodes.look(looked=LATER)
    found = nodes.resumed("step-1", 1, resume_files=resume_files)
    assert found.keys() == files
    assert found["meta"] == "of 1"


def test_missing_shard_is_named(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-1", 0, 1)
    nodes.look(looked=LATER)
    del nodes.store.objects["job/checkpoints/step-1/1-1-1.json"]
    with pytest.raises(CheckpointError, match="checkpoint step-1 of job job lacks the part of node 1"):
        nodes.resumed("step-1", 0)


def test_checkpoint_of_the_resumed_job_is_not_stored_again(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-1", 0, 1)
    for rank in (0, 1):
        nodes.nodes[rank].add_resumed(nodes.place(rank) / "step-1")
    nodes.look(looked=LATER)
    assert (nodes.complete, nodes.nodes[1].as_record()["holds"]) == ({}, False)
    nodes.save("step-2", 0)
    nodes.look(looked=LATER)
    assert nodes.complete == {"step-2": ["1-0-1"]}
