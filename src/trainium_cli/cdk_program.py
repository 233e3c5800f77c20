"""Finds and runs the CDK CLI, and shows its progress in a few lines."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainium_cli.cdk_events import cdk_event, run_cdk
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.progress_reporter import ProgressReporter
from trainium_core.facts import facts
from trainium_runtime.naming import FLEET_READINESS

_LAST_LINES = 30  # lines of output to show if no stack event explains a failure
_SECONDS = 10


def find_cdk(folder: Path) -> str:
    """The CDK CLI of the project, else on PATH, else from `trn doctor --fix`. Raises CliError if there is none."""
    found = cdk_path(folder)
    if found is None:
        message = (
            "There is no CDK CLI: neither in node_modules of this folder or one above, nor on PATH.\n"
            "Run `trn doctor --fix` (in this repository: `make setup`)."
        )
        raise CliError(message, ExitCode.BAD_INPUT)
    return found


def cdk_path(folder: Path) -> str | None:
    """The CDK CLI in node_modules of the folder or a folder above, else on `tool_path`; None if there is none.

    A program in node_modules must belong to the user or root.
    """
    for place in (folder, *folder.parents):
        program = place / "node_modules" / ".bin" / "cdk"
        # A folder above, such as /tmp, may be open to other users.
        if program.exists() and all(
            part.lstat().st_uid in (0, os.getuid()) for part in (program, *program.parents[:2])
        ):
            return str(program)
    return shutil.which("cdk", path=tool_path())


def node_version(program: str) -> str | None:
    """The version that a `node` program prints, such as v24.1.0; None if it does not run."""
    try:
        ran = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout.strip()


def is_supported_node(version: str | None) -> bool:
    """Whether the CDK CLI is tested with this version of Node.js."""
    major = re.match(r"v(\d+)", version or "")
    return major is not None and int(major[1]) in facts()["nodejs"]["majors"]


def tool_path() -> str:
    """PATH, followed by the folder of this Python environment's programs, where `trn doctor --fix` puts the CDK CLI."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])


def tool_environment() -> Mapping[str, str]:
    """This process's environment, with a PATH on which the CDK CLI finds Node.js."""
    return {**os.environ, "PATH": tool_path()}


class CdkRun:
    """One run of the CDK CLI.

    Attributes:
        output_lines: The output of `with_progress`.
    """

    def __init__(self, program: str, arguments: Sequence[str], folder: Path) -> None:
        self._command, self._folder = [program, *arguments], folder
        self.output_lines: list[str] = []

    def in_terminal(self) -> int:
        """Run it in this terminal, where it can prompt. Returns the exit code."""
        return subprocess.run(self._command, cwd=self._folder, env=tool_environment(), check=False).returncode

    def with_progress(self) -> int:
        """Run it without a terminal, and show its progress. Returns the exit code."""
        with ProgressReporter() as reporter:
            reporter.report("cdk", self._command[1])

            def on_line(line: str) -> None:
                self.output_lines.append(line)
                _report(reporter, line)

            return run_cdk(self._command, self._folder, on_line, environment=tool_environment())

    @property
    def output_tail(self) -> str:
        return "\n".join(line for line in self.output_lines[-_LAST_LINES:] if line)


def _report(reporter: ProgressReporter, line: str) -> None:
    event = cdk_event(line)
    if event is None:
        return
    if event.failed:
        reporter.report("failed", event.what, ended=True)
    elif event.kind == FLEET_READINESS and event.verb == "create":
        reporter.report("nodes", f"{event.counted}; the nodes start and test themselves, `trn status` shows them")
    else:
        reporter.report("resources", f"{event.counted}; {event.verb} {event.kind} {event.what}")
