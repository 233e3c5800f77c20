"""A setup script that no node could run is refused before one is started."""

from pathlib import Path

from tests.core.plans import from_settings, the_problem

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
