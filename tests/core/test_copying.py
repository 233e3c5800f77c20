"""Jobs that copy files: which paths are remote, and the commands for the nodes, run on this machine."""

import os
import subprocess
from pathlib import Path

import pytest

from trainium_core.jobs.copying import Remote, copy_from, copy_to, output_folder, paths_through_links, remote
from trainium_core.jobs.request import JobRequest

MEMBERS = ("i-0aaaaaaaa", "i-0bbbbbbbb")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("all:/opt/", Remote(where="all", path="/opt/")),
        ("train-20261122-190501:outputs", Remote(where="train-20261122-190501", path="outputs")),
        ("./a:b", None),
        ("0:/two\nlines #1?", Remote(where="0", path="/two\nlines #1?")),
    ],
)
def test_remote_path_has_a_place_before_its_colon(text: str, found: Remote | None) -> None:
    assert remote(text) == found


@pytest.mark.parametrize(("where", "rank"), [("all", None), ("1", 1), ("i-0bbbbbbbb", 1)])
def test_nodes_are_named_by_rank_or_instance(where: str, rank: int | None) -> None:
    named = Remote(where=where, path="x")
    assert (named.rank(MEMBERS), named.is_job) == (rank, False)


def run(request: JobRequest, folder: Path, rank: int = 0) -> None:
    places = {"TRN_INPUT_DIR": str(folder / "in"), "TRN_OUTPUT_DIR": str(folder / "out")}
    for place in places.values():
        Path(place).mkdir(exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "TRN_NODE_RANK": str(rank), **places}
    subprocess.run(["bash", "-c", str(request.command)], env=environment, check=True)


@pytest.mark.parametrize(("path", "target"), [("it's/", "it's/data"), ("a/b c", "a/b c")])
def test_folder_is_copied_to_the_same_path_repeatedly(path: str, target: str, tmp_path: Path) -> None:
    (tmp_path / "in/copied").mkdir(parents=True)
    (tmp_path / "in/copied/file").write_text("content")
    for _ in range(2):
        run(copy_to(Path("my/data"), f"{tmp_path}/there/{path}", None), tmp_path)
    assert list((tmp_path / "there").rglob("file")) == [tmp_path / "there" / target / "file"]


def test_only_one_node_keeps_the_fetched_files(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/a").write_text("")
    (tmp_path / "link").symlink_to("logs")
    request = copy_from(f"{tmp_path}/logs", 1)
    assert (request.nodes, output_folder("logs", 1), output_folder("logs/", 0)) == (
        2,
        "outputs/node-1/logs",
        "outputs/logs",
    )
    run(request, tmp_path, rank=0)
    assert list((tmp_path / "out").iterdir()) == []
    run(copy_from(f"{tmp_path}/link", 0), tmp_path)
    assert list((tmp_path / "out").rglob("a")) == [tmp_path / "out/link/a"]
    run(request, tmp_path, rank=1)
    assert (tmp_path / "out/logs/a").exists()


def test_files_have_paths_through_links() -> None:
    files = ("o/blobs/1", "o/runs/7/model", "o/other")
    links = {
        **{"o/snapshots/a/weights": "../../blobs/1", "o/latest": "runs/7", "o/newest": "latest", "o/runs/7/up": ".."},
        **{"o/self": ".", "o/dangling": "none", "o/out": "../../etc/passwd"},
    }
    found = paths_through_links(files, links)
    assert {name: found.get(name) for name in ("o/snapshots/a/weights", "o/latest/model", "o/newest/model")} == {
        "o/snapshots/a/weights": "o/blobs/1",
        "o/latest/model": "o/runs/7/model",
        "o/newest/model": "o/runs/7/model",
    }
    assert not [name for name in found if name.startswith(("o/self", "o/dangling", "o/out", "o/runs/7/up"))]
