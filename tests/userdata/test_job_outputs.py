"""The outputs of a node: which files and links are stored, and what is named instead."""

import errno
import mmap
import os
import re
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.job_parts import MemoryStore, launch
from trn_job import outputs as outputs_module
from trn_job.file_tree import file_tree, make_links
from trn_job.outputs import Outputs, is_refusal
from trn_node.s3 import S3Error
from trn_node.web import Response


def test_failed_outputs_do_not_stop_others(tmp_path: Path) -> None:
    store: Any = MemoryStore()
    tried: list[str] = []

    def upload(key: str, file: Path) -> None:
        tried.append(key)
        if "bad" in key:
            raise OSError("S3 does not answer")
        store.objects[key] = file.read_bytes()

    store.upload = upload
    (tmp_path / "outputs").mkdir()
    for name in ("good", *(f"bad-{number}" for number in range(5))):
        (tmp_path / "outputs" / name).write_text("x")
    outputs = Outputs(launch()._replace(folder=str(tmp_path)), store, print)
    for _ in range(2):
        with pytest.raises(OSError, match=r"files were not stored: bad-0, .*, for example: S3 does not answer$"):
            outputs.upload()
    assert store.objects["job/attempts/outputs/0.json"]["files"] == ["good"]
    assert set(tried) == {"job/outputs/good", *(f"job/outputs/bad-{number}" for number in range(5))}


class OutputsOnNode:
    """The outputs of node 0 of two, and the files in S3 with their contents."""

    def __init__(self, folder: Path) -> None:
        self.store, self.folder = MemoryStore(), folder
        for name in ("outputs", "source"):
            (folder / name).mkdir()
        store: Any = self.store
        store.upload = self._upload
        self.outputs = Outputs(launch(nodes=2)._replace(folder=str(folder)), store, print)

    def _upload(self, key: str, file: Path) -> None:
        self.store.objects[key] = file.read_text()

    def write(self, path: str, text: str = "") -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    @property
    def stored(self) -> dict[str, str]:
        prefix = "job/outputs/"
        found = {key: text for key, text in self.store.objects.items() if key.startswith(prefix)}
        return {key.removeprefix(prefix): text for key, text in found.items()}


@pytest.fixture
def node(tmp_path: Path) -> OutputsOnNode:
    return OutputsOnNode(tmp_path)


def test_outputs_do_not_take_the_names_of_others(node: OutputsOnNode) -> None:
    for name in ("node-1/metrics", "node-2/metrics", "working-directory/metrics", "home-directory/metrics"):
        node.write(f"outputs/{name}", "of node 0")
    node.outputs.upload()
    assert [*node.stored] == ["node-2/metrics"]
    taken = ("node-1/metrics", "working-directory/metrics", "home-directory/metrics")
    assert node.outputs.left_out == dict.fromkeys(taken, "the name is that of other outputs")


def test_files_that_the_command_writes_to_its_working_directory_are_outputs(node: OutputsOnNode) -> None:
    for name in ("train.py", "config", "prepared"):
        node.write(f"source/{name}", "before")
    node.outputs.begin()
    (node.folder / "source/data").symlink_to("/scratch/data")
    node.write("source/config", "changed")
    node.write("source/out/model.pt", "weights")
    node.write("source/__pycache__/train.cpython-311.pyc")
    (node.folder / "source/latest").symlink_to("out")
    node.write("outputs/log", "of the script")
    node.outputs.upload()
    assert node.stored == {
        "log": "of the script",
        "working-directory/config": "changed",
        "working-directory/out/model.pt": "weights",
    }
    assert node.store.objects["job/attempts/outputs/0.json"]["links"] == {"working-directory/latest": "out"}
    assert node.outputs.left_out == {}


def test_files_that_the_command_writes_to_its_home_directory_are_outputs(node: OutputsOnNode) -> None:
    node.write("setup.sh", "of the job program")
    node.write("venv/bin/python", "of the setup")
    node.outputs.begin()
    for name in ("command.sh", "torchrun/log", ".cache/model", ".bash_history", "source/log"):
        node.write(name, "x")
    (node.folder / "data").symlink_to("/scratch/data")
    node.write("results/model.pt", "weights")
    (node.folder / "latest").symlink_to("results")
    node.outputs.upload()
    assert node.stored == {"home-directory/results/model.pt": "weights", "working-directory/log": "x"}
    assert node.store.objects["job/attempts/outputs/0.json"]["links"] == {"home-directory/latest": "results"}
    assert node.outputs.left_out == {}


def test_working_directory_has_a_size_limit_and_its_newest_files_are_stored(
    node: OutputsOnNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs_module, "LARGEST_WRITTEN_GIB", 10 / 1024**3)
    node.outputs.begin()
    for age, name in enumerate(("a-model", "data", "log")):
        os.utime(node.write(f"source/{name}", "12345"), (10 - age, 10 - age))
    node.outputs.upload()
    assert sorted(node.stored) == ["working-directory/a-model", "working-directory/data"]
    assert [*node.outputs.left_out] == ["working-directory/log"]
    os.utime(node.write("source/log", "12345"), (20, 20))
    node.outputs.upload()
    assert [*node.outputs.left_out] == ["working-directory/log"]


def test_large_file_is_stored_while_the_command_runs_once_it_no_longer_changes(
    node: OutputsOnNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs_module, "SMALL_BYTES", 3)
    node.write("outputs/log", "a")
    node.write("outputs/model", "half")
    node.outputs.upload(is_running=True)
    assert node.stored == {"log": "a"}
    assert node.outputs.unstored.endswith("are not in S3, among them model")
    node.write("outputs/log", "ab")
    node.write("outputs/model", "halfhalf")
    node.outputs.upload(is_running=True)
    assert node.stored == {"log": "ab"}
    node.outputs.upload(is_running=True)
    assert node.stored == {"log": "ab", "model": "halfhalf"}
    assert node.outputs.unstored.endswith("are not in S3")


def test_content_that_changed_without_the_time_of_the_file_is_stored_at_the_end(node: OutputsOnNode) -> None:
    mapped, dated = node.write("outputs/mapped", "zeros"), node.write("outputs/dated", "first")
    os.utime(dated, (1, 1))
    with mapped.open("r+b") as file, mmap.mmap(file.fileno(), 5) as content:
        # A second write to the same page does not change the time before the kernel has written the page to the disk.
        content[:] = b"first"
        node.outputs.upload(is_running=True)
        assert node.stored == {"mapped": "first", "dated": "first"}
        content[:] = b"final"
    dated.write_text("final")
    os.utime(dated, (1, 1))
    node.outputs.end_running(0)
    node.outputs.upload()
    assert node.stored == {"mapped": "final", "dated": "final"}


ZIP = "PK\x03\x04 {} PK\x05\x06" + 18 * "\0"
"""A file as torch.save writes it."""


@pytest.mark.parametrize("exit_code", [0, -9])
def test_cut_off_file_replaces_its_earlier_version_only_after_success(
    node: OutputsOnNode, exit_code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path, whole, cut_off = "working-directory/ckpt.pt", ZIP.format("step 1"), ZIP.format("step 2")[:-20]
    node.outputs.begin()
    node.write("source/ckpt.pt", whole)
    node.outputs.upload(is_running=True)
    node.write("source/ckpt.pt", cut_off)
    node.write("source/first.pt", cut_off)
    node.outputs.upload(is_running=True)
    assert node.stored == {path: whole}
    assert {path, "working-directory/first.pt"} <= set(re.split(", | ", node.outputs.unstored))
    node.outputs.end_running(exit_code)
    for _ in range(2):
        node.outputs.upload()
    assert node.stored == {path: whole if exit_code else cut_off, "working-directory/first.pt": cut_off}
    line = f"outputs: the last version of {path} is not stored: it is cut off\n"
    assert capsys.readouterr().out.count(line) == bool(exit_code)


def test_key_that_is_too_long_is_not_tried_again() -> None:
    assert is_refusal(S3Error("PUT", Response(400, Message(), b"<Code>KeyTooLongError</Code>")))


def test_links_inside_a_folder_are_kept_and_others_named(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "a").mkdir(parents=True)
    (folder / "a/file").write_text("x")
    targets = {
        **{"inner": "a/file", "a/up": "../a", "absolute": str(folder / "a"), "self": ".", "dangling": "a/none"},
        **{"back": "../folder/a/file", "out": "../other", "far": "/etc", "via": "far/passwd"},
    }
    for name, target in targets.items():
        (folder / name).symlink_to(target)
    tree = file_tree(folder)
    kept = {"inner": "a/file", "a/up": "../a", "absolute": "a", "self": ".", "dangling": "a/none", "back": "a/file"}
    assert (list(tree.files), tree.links) == (["a/file"], kept)
    assert {path: reason.partition(",")[0] for path, reason in tree.left_out.items()} == {
        "out": "a link to ../other",
        "far": "a link to /etc",
        "via": "a link to far/passwd",
    }
    (tmp_path / "copy").mkdir()
    make_links(tmp_path / "copy", tree.links)
    assert file_tree(tmp_path / "copy").links == kept


def test_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    scan = os.scandir

    def refuse(path: str) -> Any:
        if path.endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert file_tree(tmp_path).left_out == {"closed": "a folder that cannot be read: Permission denied"}
