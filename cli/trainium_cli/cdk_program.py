"""The CDK CLI: where it is, and running it with its progress in few lines."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import click

from trainium_cli.course import Course
from trainium_cli.exit_codes import ExitCode

_EVENT = re.compile(
    r"^\S+ \|\s*(?P<done>\d+)(/(?P<all>\d+))? \| [^|]+ \| (?P<status>\w+)\s*\| (?P<type>\S+)\s*\| (?P<what>.*)$"
)
"""One event of a stack, as the CDK CLI prints it."""

_LAST_LINES = 30  # of what the CLI said, when it failed without a stack that could tell why


def find_cdk(folder: Path) -> str:
    """The CDK CLI of a project: the one that is installed in it, else the one on PATH. Ends the command without any."""
    for place in (folder, *folder.parents):
        own = place / "node_modules" / ".bin" / "cdk"
        if own.exists():
            return str(own)
    found = shutil.which("cdk")
    if found is None:
        click.echo(
            "The CDK CLI is not there: neither in node_modules of this folder or one above, nor on PATH.\n"
            "Run `npm ci` (in this repository: `make setup`), or `npm install --global aws-cdk`.",
            err=True,
        )
        raise click.exceptions.Exit(ExitCode.BAD_INPUT)
    return found


class CdkRun:
    """One run of the CDK CLI. `said`: everything it printed, where that was not left to the terminal."""

    def __init__(self, program: str, arguments: Sequence[str], folder: Path) -> None:
        self._command, self._folder = [program, *arguments], folder
        self.said: list[str] = []

    def in_terminal(self) -> int:
        """Run it with this process's own terminal, so that it can ask. The exit code."""
        return subprocess.run(self._command, cwd=self._folder, check=False).returncode

    def in_few_lines(self) -> int:
        """Run it without a terminal, and show how far it is. The exit code."""
        command = [*self._command, "--no-color", "--no-notices", "--progress", "events"]
        with (
            subprocess.Popen(
                command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as process,
            Course() as course,
        ):
            assert process.stdout is not None
            course.tell("cdk", "making the template")
            for line in process.stdout:
                self.said.append(line.rstrip())
                self._tell(course, line.rstrip())
        return process.returncode

    @property
    def last_words(self) -> str:
        return "\n".join(line for line in self.said[-_LAST_LINES:] if line)

    @property
    def outputs(self) -> Sequence[str]:
        """The outputs of the stacks, as the CLI prints them: `Stack.Name = value`."""
        return [line for line in self.said if re.match(r"^[A-Za-z][\w-]*\.\w+ = ", line)]

    def _tell(self, course: Course, line: str) -> None:
        event = _EVENT.match(line)
        if event is None:
            return
        if event["status"].endswith("FAILED"):
            course.tell("failed", event["what"], ended=True)
            return
        verb = event["status"].rpartition("_")[0].removesuffix("_IN").lower()
        total = f" of {event['all']}" if event["all"] else ""
        course.tell("resources", f"{event['done']}{total} done; {verb} {event['type']} {event['what'].strip()}")
