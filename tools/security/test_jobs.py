"""The limits of the user that runs jobs on a node, and of another user on a laptop.

The lab runs whole jobs on booted nodes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainium_wire
from trainium_cli.cdk_program import cdk_path
from trainium_userdata import node
from trainium_userdata.node.trn_node import job_user, programs

OTHER_ID = 65534
AS_OTHER = ("setpriv", f"--reuid={OTHER_ID}", f"--regid={OTHER_ID}", "--clear-groups", "--no-new-privs", "--")
NODE = Path(node.__file__).parent
TEMPLATES = NODE.parent / "templates"
OVERLAY = (NODE / "trn_job/overlay.py").read_text()
SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can reach, with a folder `job` of the other user."""
    folder = Path(tempfile.mkdtemp(prefix="trn-security-"))
    folder.chmod(0o755)
    (folder / "job").mkdir()
    os.chown(folder / "job", OTHER_ID, OTHER_ID)
    yield folder
    shutil.rmtree(folder)


def as_other(*command: str | Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*AS_OTHER, *command], cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def test_job_user_cannot_log_in_and_has_no_home(place: Path) -> None:
    (place / "trn-job.conf").write_text(
        f'u {job_user.JOB_USER} {job_user.JOB_UID} "Jobs" /nonexistent /usr/sbin/nologin\n'
    )
    (place / "etc").mkdir()
    subprocess.run(["systemd-sysusers", f"--root={place}", place / "trn-job.conf"], check=True)
    (entry,) = [line for line in (place / "etc/passwd").read_text().splitlines() if line.startswith("trn-job:")]
    assert entry.split(":")[2:4] == ["60800", "60800"]
    assert entry.split(":")[5:] == ["/nonexistent", "/usr/sbin/nologin"]


def test_root_imports_nothing_from_job_folder(place: Path) -> None:
    as_other("sh", "-c", f'echo \'open("{place}/job/ran", "w")\' >argparse.py', folder=place / "job")
    assert (place / "job/argparse.py").exists()
    path = os.pathsep.join([str(NODE), str(Path(trainium_wire.__file__).parents[1])])
    script = (TEMPLATES / "trn-node.sh.j2").read_text().replace("${ROOT:-}/opt/trn", path)
    ran = subprocess.run(
        ["sh", "-c", script, "trn-node", "--help"],
        cwd=place / "job",
        env={"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "usage:" in ran.stdout, ran.stderr
    assert not (place / "job/ran").exists()


def test_program_for_another_user_runs_without_root_rights(place: Path) -> None:
    ran = programs.run("sh", "-c", "id -u; id -G; echo $HOME", seconds=60, folder=str(place / "job"), user="nobody")
    assert ran.out.split() == [str(OTHER_ID), str(OTHER_ID), f"{place}/job"]


def test_job_installs_packages_without_changing_the_image(place: Path) -> None:
    image = place / "image"
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--without-pip", image], check=True)
    (packages,) = image.glob("lib/python3*/site-packages")
    (packages / "tool.py").write_text("print('of the image')\n")
    (image / "bin/run-tool").write_text(f"#!{image}/bin/python\nimport tool\n")
    (image / "bin/run-tool").chmod(0o755)
    overlay = place / "job/venv"
    make = f"{OVERLAY}\nmake_overlay(Path({str(image)!r}), Path({str(overlay)!r}))"
    assert as_other(SYSTEM_PYTHON, "-c", make, folder=place).returncode == 0
    assert as_other(overlay / "bin/run-tool", folder=place).stdout == "of the image\n"
    own = overlay / packages.relative_to(image) / "tool.py"
    as_other("sh", "-c", f"echo 'print(\"of the job\")' >{own}", folder=place)
    assert as_other(overlay / "bin/run-tool", folder=place).stdout == "of the job\n"
    assert as_other("sh", "-c", f"echo >>{packages}/tool.py", folder=place).returncode != 0
    assert (packages / "tool.py").read_text() == "print('of the image')\n"


@pytest.mark.parametrize("part", ["node_modules", "node_modules/.bin", "node_modules/.bin/cdk"])
def test_cdk_cli_of_another_user_is_refused(part: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    program = place / "node_modules/.bin/cdk"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    assert cdk_path(place / "project") == str(program)
    os.chown(place / part, OTHER_ID, OTHER_ID)
    assert cdk_path(place / "project") is None


@pytest.mark.parametrize("part", ["node_modules", "node_modules/.bin", "node_modules/.bin/cdk"])
def test_cdk_cli_behind_a_link_of_another_user_is_refused(
    part: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    program = place / "own/node_modules/.bin/cdk"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    link = place / part
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(place / "own" / part)
    os.chown(link, OTHER_ID, OTHER_ID, follow_symlinks=False)
    assert cdk_path(place / "project") is None
