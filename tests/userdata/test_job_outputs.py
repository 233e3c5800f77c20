"""The outputs of a node: which files and links are stored, and what is named instead."""

import errno
import os
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.job_parts import MemoryStore, launch
from trn_job.file_tree import file_tree, make_links
from trn_job.results import Outputs, is_refusal
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
    for name in ("good", *(f"bad-{number}" for number in range(5))):
        (tmp_path / name).write_text("x")
    outputs = Outputs(launch(), store, tmp_path, print)
    for _ in range(2):
        with pytest.raises(OSError, match=r"files were not stored: bad-0, .*, for example: S3 does not answer$"):
            outputs.upload()
    assert list(store.objects) == ["job/outputs/good"]
    assert set(tried) == {"job/outputs/good", *(f"job/outputs/bad-{number}" for number in range(5))}


def test_first_node_does_not_store_outputs_under_the_name_of_another(tmp_path: Path) -> None:
    store: Any = MemoryStore()

    def upload(key: str, file: Path) -> None:
        store.objects[key] = file

    store.upload = upload
    for name in ("node-1/metrics", "node-2/metrics"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("of node 0")
    outputs = Outputs(launch(nodes=2), store, tmp_path, print)
    outputs.upload()
    assert list(store.objects) == ["job/outputs/node-2/metrics"]
    assert outputs.left_out == {"node-1/metrics": "the name is that of another node's outputs"}


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
