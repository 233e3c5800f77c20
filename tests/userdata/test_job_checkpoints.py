"""Checkpoints of a job: how nodes store their parts, and what they resume from."""

import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.job_parts import launch
from tests.userdata.saving_nodes import SavingNodes, save
from trn_job import checkpoint_download
from trn_job.checkpoint_download import CheckpointError


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
        together.wait(timeout=480)
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
    resumed, _ = checkpoint_download.download(launch()._replace(resume_from="latest.pt"), store, tmp_path / "resume")
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
        nodes.nodes[rank].add_resumed(nodes.place(rank) / "step-1", ())
        nodes.nodes[rank].begin_running()
    nodes.looks()
    assert (nodes.complete, nodes.nodes[1].as_record()["names"]) == ({}, [])
    nodes.save("step-2", 0)
    nodes.looks()
    assert nodes.complete == {"step-2": ["1-0-1"]}


def test_pointer_of_another_library_is_stored_with_its_checkpoint(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    save(nodes.place(0), "iteration-1")
    (nodes.place(0) / "latest").write_text("iteration-1")
    nodes.looks()
    nodes.resumed("iteration-1", 0)
    assert (tmp_path / "resumed-0-0/latest").read_text() == "iteration-1"


def test_checkpoint_that_changes_after_the_end_is_stored_at_the_next_call(tmp_path: Path) -> None:
    """The folder may be on a file system that other nodes write to."""
    nodes = SavingNodes(tmp_path, 1)
    store: Any = nodes.store
    save(nodes.place(0), "step-1")
    upload = store.upload

    def change(key: str, file: Path, digest: str) -> None:
        upload(key, file, digest)
        store.upload = upload
        file.write_text("weights of another node")

    store.upload = change
    nodes.nodes[0].end_running(0)
    with pytest.raises(OSError, match="step-1 changed while they were stored"):
        nodes.nodes[0].upload()
    nodes.nodes[0].upload()
    assert nodes.resumed("step-1", 0) == {"model": "weights of another node"}


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


@pytest.mark.parametrize("folder", ["", "experiment/"])
def test_deepspeed_checkpoint_saved_again_is_replaced_when_it_is_whole(tmp_path: Path, folder: str) -> None:
    nodes = SavingNodes(tmp_path, 2)
    name = (folder or "last/").rstrip("/")
    for step in (1, 22, 333):
        tag = f"{folder}global_step{step}" if folder else name
        for rank, states in ((1, "zero_pp_rank_1_mp_rank_00_optim"), (0, "mp_rank_00_model")):
            save(nodes.place(rank), tag, **{f"{states}_states.pt": f"weights {step}"})
        before = nodes.complete
        nodes.looks()
        assert nodes.complete == before
        (nodes.place(0) / folder / "latest").write_text(tag.removeprefix(folder))
        nodes.looks()
        for rank, states in enumerate(("mp_rank_00_model", "zero_pp_rank_1_mp_rank_00_optim")):
            path = f"{tag}/{states}_states.pt".removeprefix(f"{name}/")
            assert nodes.resumed(name, rank)[path] == f"weights {step}"


@pytest.mark.parametrize("ranks_of_latest", [(0,), (0, 1)])
def test_deepspeed_continues_in_the_folder_that_it_resumed_from(
    tmp_path: Path, ranks_of_latest: tuple[int, ...]
) -> None:
    nodes = SavingNodes(tmp_path / "first", 2)

    def attempts() -> set[str]:
        return {part.partition("-")[0] for part in nodes.complete["experiment"]}

    for attempt in (1, 2):
        for rank in (0, 1):
            tag = f"experiment/global_step{attempt}"
            save(nodes.place(rank), tag, **{f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt": f"weights {attempt}"})
        nodes.looks()
        for rank in ranks_of_latest:
            if attempt > 1:
                assert attempts() == {"1"}
            (nodes.place(rank) / "experiment/latest").write_text(f"global_step{attempt}")
            nodes.looks()
        assert attempts() == {str(attempt)}
        nodes = nodes.resume(tmp_path / "second", "experiment")


def test_shard_deleted_while_the_end_mark_is_written_is_missing(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    for rank in (0, 1):
        save(nodes.place(rank), "step-1", **{f"__{rank}_0.distcp": "weights"})
    nodes.look()
    (nodes.place(0) / "step-1" / "__0_0.distcp").unlink()
    save(nodes.place(0), "step-1", **{".metadata": "all"})
    nodes.looks()
    assert nodes.complete == {}
    nodes.end()
    nodes.nodes[0].complete_all()
    assert nodes.log_lines[0] == ("checkpoint step-1 is not complete: node 0: the script deleted step-1/__0_0.distcp")


def test_shard_deleted_before_its_upload_is_missing(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-2", 0, 1)
    nodes.looks()
    nodes.save("step-1", 0)
    nodes.looks()
    nodes.end(1, 0)
    nodes.nodes[0].complete_all()
    assert list(nodes.complete) == ["step-2"]
    assert nodes.log_lines[0] == "checkpoint step-1 is not complete: node 1 has no part of it"
    assert nodes.incomplete == {"step-1": ["1-0-1"]}


def inotify_instances() -> set[str]:
    """The descriptors of this process that are inotify instances."""
    found = set[str]()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if str(descriptor.readlink()) == "anon_inode:inotify":
                found.add(descriptor.name)
    return found


def test_nodes_leave_no_inotify_instance(tmp_path: Path) -> None:
    before = inotify_instances()
    nodes = SavingNodes(tmp_path, 2)
    made = inotify_instances() - before
    assert len(made) == 2
    del nodes
    assert not made & inotify_instances()
