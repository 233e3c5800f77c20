"""Ctrl-C ends a command with a message and exit code 130, also while the command waits for AWS."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import GOOD, run
from trainium_cli.cluster import nodes_command
from trainium_cli.exit_codes import ExitCode


def test_interrupted_command_ends_with_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_region: str, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(nodes_command, "AwsNodes", interrupted)
    ended = run("nodes", *GOOD)
    assert (ended.exit_code, ended.stderr) == (ExitCode.INTERRUPTED, "\nInterrupted.\n")


def _interrupted_while_aws_is_silent(folder: Path, *arguments: str) -> tuple[int, str]:
    """The exit code and the output of a command that gets Ctrl-C while it waits for AWS."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment = {
            **os.environ,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
        }
        command = [str(Path(sys.executable).with_name("trn")), *arguments]
        with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
            connection, _ = silent.accept()  # The command waits for the response here.
            with connection:
                process.send_signal(signal.SIGINT)
                _, shown = process.communicate(timeout=480)
    return process.returncode, shown.strip()


def test_command_waiting_for_aws_ends_without_traceback(tmp_path: Path) -> None:
    assert _interrupted_while_aws_is_silent(tmp_path, "list", *GOOD) == (ExitCode.INTERRUPTED, "Interrupted.")


def test_second_ctrl_c_before_the_message_ends_the_command() -> None:
    program = """
import os, signal
from trainium_cli.interruption import interrupt_message, handle_interrupts
handle_interrupts()
with interrupt_message("Interrupted: the nodes keep running, and are billed."):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        os.kill(os.getpid(), signal.SIGINT)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=480)
    assert (ended.returncode, ended.stderr) == (130, "\nInterrupted: the nodes keep running, and are billed.\n")


def test_ctrl_c_after_the_result_changes_nothing() -> None:
    program = """
import atexit, os, signal, sys
from trainium_cli.main import main
atexit.register(os.kill, os.getpid(), signal.SIGINT)
sys.argv = ["trn", "explain", "Unable to locate credentials"]
main()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=480)
    assert (ended.returncode, ended.stderr) == (ExitCode.OK, "")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [("deploy --yes", "Interrupted: nothing was deployed."), ("destroy --yes", "Interrupted: nothing was destroyed.")],
)
def test_ctrl_c_before_any_change_is_reported_as_such(tmp_path: Path, command: str, sentence: str) -> None:
    (tmp_path / "cdk.json").write_text(
        '{"app": "none", "context": {"trn:instance_type": "trn1.32xlarge", "trn:region": "us-west-2"}}'
    )
    assert _interrupted_while_aws_is_silent(tmp_path, *command.split()) == (ExitCode.INTERRUPTED, sentence)
