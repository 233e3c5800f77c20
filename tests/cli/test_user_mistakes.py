"""Mistakes of a new user: one clear message, no line wider than the screen, the right exit code."""

import json
import shlex
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.cli.running import run, run_program
from trainium_cli.exit_codes import ExitCode

GOOD = {"trn:instance_type": "trn1.32xlarge", "trn:region": "us-west-2", "trn:nodes": 2}
FOLDERS = {
    "good": json.dumps({"app": "python3 app.py", "context": GOOD}),
    "empty": None,
    "bad-json": '{"app": "x",\n "context": {"trn:nodes": 2,}\n}',
    "beside-context": json.dumps({"app": "x", "trn:nodes": 2, "context": GOOD}),
    "list-as-context": '{"context": []}',
    "wrong-values": json.dumps({"context": {**GOOD, "trn:nodes": "two", "trn:typo": 1, "trn:instance_type": "trn9"}}),
}
CASES = [
    ("good", "plan -c =4", "-c: got '=4'"),
    ("good", "plan -c trn:=4", "as in -c trn:NAME=4"),
    ("good", "plan --file ''", "cdk.json"),
    ("good", "plan --file /", "/"),
    ("good", "status --cluster ''", "is empty"),
    ("good", "destroy --cluster '' --yes", "is empty"),
    ("good", "nodes --stack ''", "is empty"),
    ("good", "audit --stack A --stack ''", "is empty"),
    ("good", "logs --rank -1", "--rank"),
    ("good", "cp a b", "WHERE:PATH"),
    ("good", "permissions nobody", "operate"),
    ("good", "init /proc/nowhere --yes", "/proc/nowhere"),
    ("empty", "deploy --yes", "cdk.json does not exist"),
    ("bad-json", "plan", "line 2"),
    ("beside-context", "plan", 'only inside "context"'),
    ("list-as-context", "plan", "JSON object"),
    ("wrong-values", "plan", "trn:typo"),
]


@pytest.mark.parametrize(("folder", "line", "message"), CASES, ids=[f"{folder}: {line}" for folder, line, _ in CASES])
def test_mistake_is_reported_within_the_width(folder: str, line: str, message: str, tmp_path: Path) -> None:
    content = FOLDERS[folder]
    if content is not None:
        (tmp_path / "cdk.json").write_text(content)
    ended = run_program(*shlex.split(line), COLUMNS="60", NO_COLOR="1")
    output = ended.stdout + ended.stderr
    assert ended.returncode == ExitCode.BAD_INPUT, output
    assert message in " ".join(output.split())
    assert "Unexpected error" not in output
    assert "\x1b" not in output
    assert [one for one in output.splitlines() if cell_len(one) > 60] == []


def test_sentence_in_pipe_without_width_stays_on_one_line() -> None:
    known = run_program("plann").stderr.splitlines()[-1]
    assert known.startswith("Known: init, ")
    assert known.endswith(", local")


@pytest.mark.parametrize(
    ("option", "message", "printed"),
    [("--secret", "expected NAME=ARN", False), ("--env", "expected NAME=VALUE, got '=hunter2'", True)],
)
def test_option_without_name_is_refused_and_secret_is_not_printed(option: str, message: str, printed: bool) -> None:
    ended = run("run", option, "=hunter2", "train.py")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert f"Invalid value for '{option}': {message}\n" in ended.stderr
    assert ("hunter2" in ended.output) is printed
