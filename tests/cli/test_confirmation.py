"""With --json, no command prompts: each one that would is refused before it calls AWS."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cli.running import GOOD, run
from trainium_cli.exit_codes import ExitCode
from trainium_cli.main import trn

BENCH = """
name = "lm"
steps = 3
seeds = [1, 2, 3]
workload.model = "lm"
sides.trainium = {job = "job.toml", tuned = true, recovery = true}
"""
PROMPTING = ["bench bench.toml", "cache clean --keep-releases 0", "destroy", "quota request", "run --wake train.py"]
PROMPTING += ["support --include-logs"]


@pytest.fixture
def _files_without_aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", None)
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    Path("job.toml").write_text('script = "train.py"\n')
    Path("bench.toml").write_text(BENCH)


@pytest.mark.usefixtures("_files_without_aws")
@pytest.mark.parametrize("line", PROMPTING)
def test_json_does_not_prompt(line: str) -> None:
    ended = run(*shlex.split(line), *GOOD, "--json")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "--json does not prompt: pass --yes as well" in ended.stderr


def test_every_command_with_json_and_yes_is_tried() -> None:
    found = [name for name, options in _commands(trn, click.Context(trn)) if {"yes", "as_json"} <= options]
    assert [name for name in found if not any(line.startswith(name.lstrip()) for line in PROMPTING)] == []


def _commands(one: click.Command, context: click.Context, name: str = "") -> Iterator[tuple[str, set[str | None]]]:
    yield name, {option.name for option in one.params}
    if isinstance(one, click.Group):
        for below in filter(None, (one.get_command(context, each) for each in one.list_commands(context))):
            yield from _commands(below, click.Context(below, context), f"{name} {below.name}")
