"""What set_nodejs_options writes, read by the Node.js of this machine."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from trainium_cdk import nodejs_options
from trainium_cdk.nodejs_options import set_nodejs_options

LOADED_FILES_AND_THREADS = """
console.log(Object.keys(require.cache).join("\\n"));
console.log(require("node:fs").readdirSync("/proc/self/task").length);
"""


def run_node(**variables: str) -> tuple[list[str], int]:
    """The files that Node.js loads before its script, and how many threads it has. What it complains of fails."""
    environment = {"PATH": os.environ["PATH"], **variables}
    command = ["node", "--eval", LOADED_FILES_AND_THREADS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    *files, threads = done.stdout.split("\n")[:-1]
    return [file for file in files if file], int(threads)


def options_after(given: str | None = None) -> str:
    environment = {} if given is None else {"NODE_OPTIONS": given}
    set_nodejs_options(environment)
    return environment["NODE_OPTIONS"]


def test_nodejs_accepts_the_options_and_loads_the_flags() -> None:
    files, _ = run_node(NODE_OPTIONS=options_after())
    assert [Path(file).name for file in files] == ["nodejs_flags.cjs"]


@pytest.mark.parametrize("folder", ["a space", 'a "quote"', "a \\ backslash", "umläut"])
def test_a_package_in_any_folder_is_found(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / folder / "flags.cjs"
    copy.parent.mkdir()
    shutil.copy(nodejs_options._FLAGS, copy)
    monkeypatch.setattr(nodejs_options, "_FLAGS", copy)
    files, _ = run_node(NODE_OPTIONS=options_after())
    assert files == [str(copy.resolve())]


def test_what_the_user_has_set_stays_and_wins() -> None:
    own = "--v8-pool-size=7 --stack-trace-limit=20"
    options = options_after(own)
    assert options.endswith(f" {own}")
    assert run_node(NODE_OPTIONS=options)[1] == run_node(NODE_OPTIONS=own)[1]
    assert run_node(NODE_OPTIONS=options)[1] > run_node(NODE_OPTIONS="--v8-pool-size=1")[1]


def test_the_options_hold_for_the_processes_that_this_one_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_OPTIONS", "")  # put back afterwards
    set_nodejs_options()
    assert os.environ["NODE_OPTIONS"] == options_after()
