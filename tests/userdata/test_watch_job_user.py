"""The watch of a node and the user of jobs: what is left of earlier attempts when another one starts."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.node_files import JOB
from tests.userdata.watch_node import FIRST, JobNode
from trainium_userdata.node.trn_node import files, job_user


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> JobNode:
    made = JobNode(tmp_path, aws, monkeypatch)
    made.membership(FIRST)
    return made


def make_newest_folder(path: Path) -> None:
    """Make a folder that changed later than all others beside it. The kernel's clock for files is coarse."""
    path.mkdir(parents=True)
    latest = max((other.stat().st_ctime_ns for other in path.parent.iterdir() if other != path), default=0)
    while path.stat().st_ctime_ns <= latest:
        path.chmod(0o755)


def test_newest_folders_of_lost_results_are_kept_and_others_deleted(node: JobNode, monkeypatch: pytest.MonkeyPatch):
    folders = node.root / "var/lib/trn-jobs"
    monkeypatch.setattr(job_user, "belongs_to_job_user", lambda path: path.name == "old-1")
    for name in ("old-1", "lost-1", "lost-2", "lost-3", "lost-4"):
        make_newest_folder(folders / name)
    # A file of the job does not keep its folder.
    (folders / "old-1/results-lost").touch()
    node.submit()
    node.settle()
    kept = ["lost-2", "lost-3", "lost-4"]
    assert sorted(folder.name for folder in folders.iterdir()) == [*kept, f"{JOB}-1"]


@pytest.mark.parametrize("is_kept", [False, True])
def test_deep_folders_of_a_job_do_not_prevent_the_next_attempt(
    node: JobNode, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, is_kept: bool
):
    folders = node.root / "var/lib/trn-jobs"
    deep = folders / "old-1"
    make_newest_folder(deep)
    request.addfinalizer(lambda: subprocess.run(["/bin/rm", "-rf", deep], check=True))
    make_folders = f"import os\nos.chdir({str(deep)!r})\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"
    subprocess.run([sys.executable, "-c", make_folders], check=True)
    make_newest_folder(folders / "old-2")
    monkeypatch.setattr(job_user, "belongs_to_job_user", lambda _: not is_kept)
    node.submit()
    node.settle()
    assert sorted(folder.name for folder in folders.iterdir()) == [*(["old-1", "old-2"] if is_kept else []), f"{JOB}-1"]


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [((40000, 40000), ["lost-2"]), ((1, 40000), ["lost-1", "lost-2"]), ((1, 90000), ["lost-2"])],
)
def test_newest_lost_results_are_kept_and_older_ones_within_half_of_the_disk(
    node: JobNode, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], kept: list[str]
):
    folders = node.root / "var/lib/trn-jobs"
    monkeypatch.setattr(job_user, "belongs_to_job_user", lambda _: False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=2 * 65536))
    for number, size in enumerate(sizes, start=1):
        make_newest_folder(folders / f"lost-{number}")
        (folders / f"lost-{number}/output").write_bytes(b"1" * size)
    node.submit()
    node.settle()
    assert sorted(folder.name for folder in folders.iterdir()) == [*kept, f"{JOB}-1"]


@pytest.mark.parametrize(
    ("code", "status", "is_kept"),
    [
        ("exited", "0", False),
        ("exited", "1", False),
        ("exited", "2", False),
        ("exited", "5", True),
        ("killed", "KILL", True),
        ("killed", "1", True),
        ("dumped", "ABRT", True),
    ],
)
def test_folder_of_an_attempt_is_given_to_root_if_results_may_be_only_there(
    node: JobNode, code: str, status: str, is_kept: bool
):
    node.submit()
    node.settle()
    [words] = node.starts
    folder = node.launch["folder"]
    [keep] = re.findall(rf" --property=ExecStopPost=\+/bin/sh -c '([^']*)' {folder} ", words)
    node.program("chown", f'echo "$*" >>{node.root}/given')
    environment = {"PATH": f"{node.programs}:{os.defpath}", "EXIT_CODE": code, "EXIT_STATUS": status}
    subprocess.run(["/bin/sh", "-c", keep, folder], env=environment, check=True)
    assert files.read("given") == (f"root {folder}\n" if is_kept else "")
    assert Path(folder).stat().st_mode & 0o777 == (0o750 if is_kept else 0o700)


def test_processes_of_earlier_jobs_are_ended_before_an_attempt(node: JobNode):
    node.process(4711, uids="60800 60800 60800 60800")
    node.process(4712, uids="1000 1000 1000 1000")
    node.program("runuser", f'echo "$*" >>{node.root}/ended; /bin/rm -r {node.root}/proc/4711')
    node.submit()
    node.settle()
    assert files.read("ended") == "-u trn-job -- sh -c kill -s KILL -- -1\n"
    assert len(node.starts) == 1


def test_attempt_does_not_start_beside_processes_of_earlier_jobs(node: JobNode, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job_user, "ENDING_SECONDS", 0.2)
    # A process whose main thread has ended is shown as a zombie.
    node.process(4711, uids="0 60800 0 0", state="Z (zombie)", threads=2)
    node.process(4712, uids="60800 60800 60800 60800", state="Z (zombie)")
    node.program("runuser", "exit 1")
    node.submit()
    node.settle()
    assert node.starts == []
    assert node.content("attempts/1/end.json")["reason"].endswith("processes of trn-job do not end: 4711")
