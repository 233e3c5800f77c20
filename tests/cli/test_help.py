"""The help: complete, and quick because it imports little."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise

import click
import pytest

from tests.cli.running import run, run_installed
from trainium_cli.exit_codes import ExitCode
from trainium_cli.local.local_command import run_command
from trainium_cli.main import COMMANDS, trn

SLOW = (
    "boto3",
    "botocore",
    "jinja2",
    "moto",
    "aws_cdk",
    "trainium_core",
    "trainium_userdata",
    "trainium_local",
)


def command(name: str) -> click.Command:
    found = trn.get_command(click.Context(trn), name)
    assert found is not None
    return found


def test_help_imports_no_slow_module() -> None:
    code = (
        "import sys, time; start = time.perf_counter()\n"
        "from trainium_cli.main import trn\n"
        "try: trn(['--help'])\n"
        "except SystemExit: print('help:', round(time.perf_counter() - start, 3), 's', file=sys.stderr)\n"
        "print('modules:', ' '.join(sys.modules))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=480)
    print(ended.stderr)
    text, _, modules = ended.stdout.partition("modules:")
    assert "Usage: " in text
    assert set(SLOW).isdisjoint(modules.split())


def test_help_describes_each_exit_code() -> None:
    shown = run("--help").output
    assert all(f"{code.value}  {code.meaning}" in shown for code in ExitCode)


def contexts(one: click.Command, parent: click.Context) -> Iterator[click.Context]:
    context = click.Context(one, parent, one.name)
    yield context
    if isinstance(one, click.Group):
        for below in filter(None, (one.get_command(context, name) for name in one.list_commands(context))):
            yield from contexts(below, context)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_into_the_width(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    found = contexts(command(name), click.Context(trn, info_name="trn"))
    shown = "\n".join(context.command.get_help(context) for context in found)
    assert [line for line in shown.splitlines() if len(line) > 60] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_and_its_subcommands_has_help(name: str) -> None:
    parameters = [one for context in contexts(command(name), click.Context(trn)) for one in context.command.params]
    assert [one.name for one in parameters if isinstance(one, click.Option) and not one.help] == []


CHOOSING = {"stack", "stacks", "cluster", "region"}  # some commands have their own options of these names
SHARED = {"on", "overrides", "cdk_json", "as_json"}


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"run"}))
def test_shared_options_follow_those_of_the_command(name: str) -> None:
    for context in contexts(command(name), click.Context(trn)):
        is_shared = [one.name in SHARED for one in context.command.params if one.name not in CHOOSING]
        assert is_shared == sorted(is_shared), context.command.name


def test_options_of_one_engine_are_the_last_of_run() -> None:
    shown = run("run", "--help").output
    sections = [line for line in shown.splitlines() if line[:1].strip() and line.endswith(":")]
    assert sections[0] == "What runs:"
    assert sections[-2:] == ["Slurm, SageMaker and EKS:", "SageMaker only:"]


def test_help_begins_with_at_most_ten_everyday_commands() -> None:
    groups = [lazy.group for lazy in COMMANDS.values()]
    assert groups.count(groups[0]) <= 10
    assert f"{groups[0]}:\n" in run("--help").output
    assert len(set(groups)) == 1 + sum(before != after for before, after in pairwise(groups))


@pytest.mark.parametrize("name", COMMANDS)
def test_summary_is_the_first_line_of_the_help(name: str) -> None:
    assert (command(name).help or "").splitlines()[0] == COMMANDS[name].summary


def test_unknown_command_is_refused_with_the_nearest() -> None:
    ended = run("plna")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "no such command: 'plna'; did you mean plan?" in ended.stderr


def test_arguments_after_dashes_reach_the_command_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(run_command, "callback", lambda command: commands.append(command))
    typed = ("cdk", "deploy", "-c", "trn:nodes=2", "--help", "--", "x")
    assert run("local", "--", *typed).exit_code == ExitCode.OK
    assert commands == [typed]


@pytest.mark.parametrize("arguments", [("--help",), ("types",)])
def test_output_in_pipe_has_no_escape_codes(arguments: tuple[str, ...]) -> None:
    ended = run_installed(*arguments)
    assert ended.returncode == 0
    assert "\x1b" not in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(("plan", "--jsn", "--json"), "No such option"), (("plna", "--json"), "no such command: 'plna'")],
)
def test_bad_usage_with_json_is_json_on_stdout_and_text_on_stderr(arguments: Sequence[str], says: str) -> None:
    ended = run(*arguments)
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert says in json.loads(ended.stdout)["error"]
    assert says in ended.stderr
