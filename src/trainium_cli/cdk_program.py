"""The CDK CLI: where it is, and running it with its progress in few lines."""

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

_LAST_LINES = 30  # of the CLI's output, when it failed without a stack whose events explain it


def find_cdk(folder: Path) -> str:
    """The CDK CLI: of the project, else on PATH, else what `trn setup` installed. Raises CliError without any."""
    found = cdk_path(folder)
    if found is None:
        message = (
            "There is no CDK CLI: neither in node_modules of this folder or one above, nor on PATH.\n"
            "Run `trn setup` (in this repository: `make setup`)."
        )
        raise CliError(message, ExitCode.BAD_INPUT)
    return found


def cdk_path(folder: Path) -> str | None:
    """Where the CDK CLI of a project is."""
    for place in (folder, *folder.parents):
        own = place / "node_modules" / ".bin" / "cdk"
        if own.exists():
            return str(own)
    return shutil.which("cdk", path=tool_path())


def tool_path() -> str:
    """PATH, and after it the folder of this Python environment's programs, into which `trn setup` installs."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])


def tool_environment() -> Mapping[str, str]:
    """This process's, in which the CDK CLI finds Node also where the Python environment is not activated."""
    return {**os.environ, "PATH": tool_path()}


class CdkRun:
    """One run of the CDK CLI. `output_lines`: everything it printed, where that was not left to the terminal."""

    def __init__(self, program: str, arguments: Sequence[str], folder: Path) -> None:
        self._command, self._folder = [program, *arguments], folder
        self.output_lines: list[str] = []

    def in_terminal(self) -> int:
        """Run it with this process's own terminal, so that it can ask. The exit code."""
        return subprocess.run(self._command, cwd=self._folder, env=tool_environment(), check=False).returncode

    def in_few_lines(self) -> int:
        """Run it without a terminal, and show how far it is. The exit code."""
        with ProgressReporter() as reporter:

            def on_line(line: str) -> None:
                self.output_lines.append(line)
                _report(reporter, line)

            reporter.report("cdk", "making the template")
            return run_cdk(self._command, self._folder, on_line, environment=tool_environment())

    @property
    def output_tail(self) -> str:
        return "\n".join(line for line in self.output_lines[-_LAST_LINES:] if line)

    @property
    def outputs(self) -> Sequence[str]:
        """The outputs of the stacks, as the CLI prints them: `Stack.Name = value`."""
        return [line for line in self.output_lines if re.match(r"^[A-Za-z][\w-]*\.\w+ = ", line)]


def _report(reporter: ProgressReporter, line: str) -> None:
    event = cdk_event(line)
    if event is None:
        return
    if event.failed:
        reporter.report("failed", event.what, ended=True)
    else:
        reporter.report("resources", f"{event.counted}; {event.verb} {event.kind} {event.what}")
