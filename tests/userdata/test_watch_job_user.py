"""The watch of a node and the user of jobs: what is left of earlier attempts when another one starts."""

import shutil
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


def test_lost_results_that_use_half_of_the_disk_are_deleted(node: JobNode, monkeypatch: pytest.MonkeyPatch):
    folders = node.root / "var/lib/trn-jobs"
    monkeypatch.setattr(job_user, "belongs_to_job_user", lambda _: False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=2 * 65536))
    for name in ("lost-1", "lost-2"):
        make_newest_folder(folders / name)
        (folders / name / "output").write_bytes(b"1" * 40000)
    node.submit()
    node.settle()
    assert sorted(folder.name for folder in folders.iterdir()) == ["lost-2", f"{JOB}-1"]


def test_folder_of_an_attempt_with_lost_results_is_given_to_root_when_the_unit_ends(node: JobNode):
    node.submit()
    node.settle()
    [words] = node.starts
    keep = """'test "$EXIT_STATUS" != 5 || { chmod 750 "$0" && chown root "$0"; }'"""
    assert f" --property=ExecStopPost=+/bin/sh -c {keep} {node.launch['folder']} " in words


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
