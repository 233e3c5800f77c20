"""The page on porting: its steps result in the ported scripts, and `trn assess` prints what the page shows."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.layout.repository import ROOT

PAGE = ROOT / "docs" / "guides" / "port-a-script.md"
SCRIPTS = ROOT / "examples" / "port"
SHOWN = re.compile(r"native: |xla: |train\.py:")


def blocks(text: str) -> Iterator[tuple[str, str]]:
    yield from re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def edited(script: str, diff: str) -> str:
    """The script with a diff applied. Each part of the diff must fit exactly one place."""
    for part in diff.split("@@\n"):
        lines = part.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        assert script.count(old) == 1, part
        script = script.replace(old, "".join(line[1:] for line in lines if line[0] in " +"))
    return script


def ported(script: str, text: str) -> str:
    """Apply the steps in a part of the page to a script, and check the findings that the page shows."""
    compared = 0
    for language, block in blocks(text):
        if language == "diff":
            script = edited(script, block)
        elif block.startswith("$ trn assess "):
            command, *shown = block.splitlines()
            Path("train.py").write_text(script)
            printed = run(*command.split()[2:]).stdout.splitlines()
            assert [line for line in printed if SHOWN.match(line)] == shown
            compared += 1
    assert compared
    return script


def test_steps_of_the_page_port_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    common, native, xla = re.split(r"^## [45]\. .*$", PAGE.read_text(), flags=re.MULTILINE)
    script = ported((SCRIPTS / "train.py").read_text(), common)
    assert ported(script, native) == (SCRIPTS / "train_native.py").read_text()
    assert ported(script, xla) == (SCRIPTS / "train_xla.py").read_text()
