"""`trn report`: exit codes by the decision, the page, packs and their verification."""

import json
import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.core.test_pilot_report import GOOD, GPU, gate
from trainium_cli.exit_codes import ExitCode
from trainium_core.evidence.gates import NOT_MET
from trainium_core.evidence.record import Record, record_text


@pytest.fixture
def pilot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "pilot"
    folder.mkdir()
    (folder / "trn.json").write_text(record_text(GOOD))
    (folder / "gpu.json").write_text(record_text(GPU))
    return folder


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (GOOD, ExitCode.OK),
        (replace(GOOD, gates=(gate(NOT_MET),)), ExitCode.NOT_READY),
        (replace(GOOD, gates=()), ExitCode.UNKNOWN),
    ],
)
def test_exit_code_follows_the_decision(record: Record, code: int, pilot: Path) -> None:
    (pilot / "trn.json").write_text(record_text(record))
    ended = run("report", "pilot")
    assert ended.exit_code == code, ended.output
    assert "Written: report.html" in ended.output
    assert (pilot.parent / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.usefixtures("pilot")
def test_json_holds_decision_and_steps() -> None:
    printed = json.loads(run("report", "pilot", "--json", "--output", "page.html").stdout)
    assert printed["decision"] == "go"
    assert len(printed["steps"]) == 6
    assert Path("page.html").is_file()


def test_several_folders_are_one_pilot(pilot: Path) -> None:
    other = pilot.parent / "more"
    other.mkdir()
    (pilot / "gpu.json").rename(other / "gpu.json")
    printed = json.loads(run("report", "pilot", "more", "--json").stdout)
    assert sorted(printed["records"]) == ["more/gpu.json", "pilot/trn.json"]


@pytest.mark.usefixtures("pilot")
def test_pack_is_verified_and_names_what_was_changed() -> None:
    assert run("report", "pilot", "--pack", "pack").exit_code == ExitCode.OK
    assert not Path("report.html").exists()
    unchanged = run("report", "--verify", "pack")
    assert unchanged.exit_code == ExitCode.OK, unchanged.output
    digest = unchanged.output.partition("SHA-256 of the statement: ")[2].split()[0]
    assert run("report", "--verify", "pack", "--expect", digest).exit_code == ExitCode.OK
    other = run("report", "--verify", "pack", "--expect", "0" * 64)
    assert (other.exit_code, f"is {digest}, not 000" in " ".join(other.output.split())) == (ExitCode.NOT_READY, True)
    Path("pack/evidence/gpu.json").write_text("{}")
    changed = run("report", "--verify", "pack", "--json")
    assert changed.exit_code == ExitCode.NOT_READY
    assert any("evidence/gpu.json was changed" in problem for problem in json.loads(changed.stdout)["problems"])


@pytest.mark.usefixtures("pilot")
def test_page_rewritten_with_its_digest_is_found() -> None:
    run("report", "pilot", "--pack", "pack")
    page, statement = Path("pack/report.html"), Path("pack/statement.intoto.json")
    before = sha256(page.read_bytes()).hexdigest()
    page.write_text(page.read_text().replace("Go", "No"))
    statement.write_text(statement.read_text().replace(before, sha256(page.read_bytes()).hexdigest()))
    ended = run("report", "--verify", "pack")
    assert (ended.exit_code, ended.output) == (
        ExitCode.NOT_READY,
        "report.html is not the page that the evidence gives.\n",
    )


@pytest.mark.usefixtures("pilot")
def test_pack_never_replaces_a_folder() -> None:
    ended = run("report", "pilot", "--pack", "pilot")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "Name a new folder" in ended.stderr


def test_name_that_no_statement_can_contain_is_refused(pilot: Path) -> None:
    (pilot / os.fsdecode(b"\xff.json")).write_text("{}")
    ended = run("report", "pilot", "--pack", "pack")
    assert (ended.exit_code, Path("pack").exists()) == (ExitCode.BAD_INPUT, False)
    assert "xff.json is not UTF-8" in ended.stderr


def test_link_in_a_folder_is_refused(pilot: Path) -> None:
    (pilot / "link.json").symlink_to("/etc/hostname")
    ended = run("report", "pilot")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "is a link" in ended.stderr


@pytest.mark.usefixtures("pilot")
def test_verify_takes_one_folder_and_no_option() -> None:
    for more in (("pilot",), ("--output", "x.html"), ("--pack", "x")):
        assert run("report", "--verify", "pilot", *more).exit_code == ExitCode.BAD_INPUT


def test_json_of_other_programs_causes_a_warning_only_if_it_is_invalid(pilot: Path) -> None:
    (pilot / "estimate.json").write_text('{"hours": 8}')
    assert "warning" not in run("report", "pilot").output
    assert list(json.loads(run("report", "pilot", "--json").stdout)["foreign"]) == ["estimate.json"]
    (pilot / "estimate.json").write_text('{"hours": ')
    assert "warning: estimate.json does not count" in run("report", "pilot").output
