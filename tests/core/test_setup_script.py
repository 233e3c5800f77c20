"""A setup script that no node could run is refused before one is started."""

import shutil
from pathlib import Path

import pytest

from tests.core.plans import GOOD, from_settings, the_problem
from trainium_core.plan import Plan
from trainium_core.plan.rules.nodes import bash_syntax_error
from trainium_core.problems import PlanError

BROKEN = "if true; then\n  echo\n"


def script(folder: Path, text: bytes) -> str:
    (folder / "setup.sh").write_bytes(text)
    return str(folder / "setup.sh")


def test_a_script_that_bash_cannot_read_is_refused_with_the_message_of_bash(tmp_path: Path) -> None:
    problem = the_problem(setup_script=script(tmp_path, BROKEN.encode()))
    assert problem.key == "setup_script"
    assert "line 3: syntax error: unexpected end of file" in problem.allowed


def test_a_script_is_read_and_not_run(tmp_path: Path) -> None:
    from_settings(setup_script=script(tmp_path, f"touch {tmp_path}/ran\n".encode()))
    assert not (tmp_path / "ran").exists()


def test_a_file_with_carriage_returns_is_taken_with_line_feeds(tmp_path: Path) -> None:
    assert from_settings(setup_script=script(tmp_path, b"echo a\r\necho b\r\n")).setup_script == "echo a\necho b\n"


def test_a_text_with_carriage_returns_is_refused() -> None:
    with pytest.raises(PlanError, match="has carriage returns"):
        Plan(**GOOD, setup_script="echo a\r\n")


def test_where_there_is_no_bash_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainium_core.plan.rules.nodes.which", lambda _: None)
    assert bash_syntax_error(f"{BROKEN}# without bash") is None


def test_bash_is_there_where_the_tests_run() -> None:
    assert shutil.which("bash")
