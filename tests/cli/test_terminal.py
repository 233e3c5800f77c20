"""What `trn` prints: no spaces at line ends, wrapped sentences, and no escape sequences other than colours."""

from pathlib import Path

import pytest

from tests.cli.running import GOOD, run, run_program
from trainium_cli.exit_codes import ExitCode
from trainium_cli.terminal import console, echo, echo_verbatim, pairs, print_json


@pytest.mark.parametrize("columns", ["60", "80", "200"])
@pytest.mark.parametrize("arguments", [("types",), ("settings",), ("plan", *GOOD), ("estimate", "--offline", *GOOD)])
def test_no_line_ends_in_spaces(monkeypatch: pytest.MonkeyPatch, columns: str, arguments: tuple[str, ...]) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = run(*arguments).stdout.splitlines()
    assert len(lines) > 10
    assert [line for line in lines if line != line.rstrip()] == []


def test_sentence_on_standard_output_fits_into_the_width(tmp_path: Path) -> None:
    ended = run_program("local", "status", TRN_LOCAL_HOME=str(tmp_path), COLUMNS="60")
    assert ended.returncode == ExitCode.UNKNOWN
    assert ended.stdout.splitlines() == ["The embedded AWS is not running. Start it with: trn local", "start"]


def test_commands_under_trn_local_have_its_prefix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "\n`trn support` writes" in run("explain", "a text of no entry").stderr
    monkeypatch.setenv("TRN_LOCAL_PREFIX", "trn local --")
    assert "\n`trn local -- trn support` writes" in run("explain", "a text of no entry").stderr
    console().print(pairs([("next", "`cdk deploy`, `trn local stop`")]))
    print_json({"fix": "`cdk deploy`"})
    echo_verbatim("a script's `cdk deploy`")
    shown = "  next  `trn local -- cdk deploy`, `trn local stop`"
    assert capsys.readouterr().out.splitlines() == [
        shown,
        "{",
        '  "fix": "`cdk deploy`"',
        "}",
        "a script's `cdk deploy`",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b]52;c;AAAA\x07b", "ab"),  # Writes the clipboard.
        ("a\x1b]0;title", "a"),
        ("a\x1b[2Jb\x1b[1Ac\x1bcd", "abcd"),
        ("\x9b2Ja\x00\x08b\u202ec", "2Jabc"),
        ("50%\r60%\r\n", "50%\n60%\n"),
        ("\x1b[31mred\x1b[0m\t.", "\x1b[31mred\x1b[0m\t."),
    ],
)
def test_printed_text_keeps_colours_and_no_other_escape_sequences(
    capsys: pytest.CaptureFixture[str], text: str, shown: str
) -> None:
    echo(text, colour=True)
    assert capsys.readouterr().out == f"{shown}\n"
