"""What every table of `trn` has in common."""

from pathlib import Path

import pytest

from tests.cli.running import GOOD, run, run_program
from trainium_cli.exit_codes import ExitCode
from trainium_cli.terminal import question


@pytest.mark.parametrize("columns", ["60", "80", "200"])
@pytest.mark.parametrize("arguments", [("types",), ("settings",), ("plan", *GOOD), ("estimate", "--offline", *GOOD)])
def test_no_line_ends_in_spaces(monkeypatch: pytest.MonkeyPatch, columns: str, arguments: tuple[str, ...]) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = run(*arguments).stdout.splitlines()
    assert len(lines) > 10
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_sentence_on_standard_output_is_within_the_width(tmp_path: Path) -> None:
    ended = run_program("local", "status", TRN_LOCAL_HOME=str(tmp_path), COLUMNS="60")
    assert ended.returncode == ExitCode.UNKNOWN
    assert ended.stdout.splitlines() == ["The embedded AWS does not run. Start it with: trn local", "start"]


def test_a_question_leaves_room_for_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = "Write this to /home/somebody/pilots/large-language-models?"
    assert question(text) == "Write this to\n/home/somebody/pilots/large-language-models?"
