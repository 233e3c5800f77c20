"""What bash offers when somebody presses Tab, by the script that `trn completion bash` prints."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import run
from trainium_cli.completion_command import SHELLS

LINES = {
    "trn dep": {"deploy"},
    "trn explain --he": {"--help"},
    "trn plan -c trn:capa": {"capacity="},
    "trn plan -c trn:capacity=capacity-b": {"capacity-block"},
    "trn plan -c trn:instance_type=trn2.48": {"trn2.48xlarge"},
    "trn status --region us-west": {"us-west-2"},
    "trn plan -c trn:nothing=": set[str](),
}
DRIVER = """
trn() { "$PYTHON" -c 'from trainium_cli.main import main; main()' "$@"; }
eval "$(trn completion bash)"
while IFS= read -r COMP_LINE; do
    COMP_POINT=${#COMP_LINE}
    COMPREPLY=()
    _trn_completion trn 2>/dev/null
    echo "${COMPREPLY[*]}"
done
"""


def test_bash_completes_commands_options_settings_and_their_values(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "HOME": str(tmp_path)}
    asked = "".join(f"{line}\n" for line in LINES)
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", DRIVER],
        input=asked,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [set(line.split()) for line in ran.stdout.splitlines()]
    assert dict(zip(LINES, answers, strict=True)) == LINES


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_its_script(shell: str) -> None:
    assert "_TRN_COMPLETE" in run("completion", shell).stdout


def test_an_unknown_shell_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert "name the shell: bash, zsh, fish" in run("completion").stderr
