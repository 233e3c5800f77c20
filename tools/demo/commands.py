"""Runs commands as a user types them, and shows their progress in a few lines."""

import subprocess
import sys
from pathlib import Path

from rich.console import Console

from trainium_cli.cdk_events import CdkEvent, cdk_event, run_cdk
from trainium_cli.terminal import Screen

_OUTCOMES = ("✅", "❌", "✨")
_EVENTS_PER_LINE = 12
"""Number of resources per line of progress where lines cannot be overwritten."""


class CommandFailedError(Exception):
    """A command ended with an unexpected exit code. The message contains output that was not shown."""


class Commands:
    """Runs commands and shows them, with a spinner on a terminal and plain lines elsewhere."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def trn(self, *arguments: str, codes: tuple[int, ...] = (0,), cwd: Path | None = None) -> int:
        """Run `trn`, show its output, and return its exit code.

        Raises:
            CommandFailedError: The exit code is not in `codes`.
        """
        self._show("trn", *arguments)
        code = subprocess.run(["trn", *arguments], cwd=cwd, check=False).returncode
        if code not in codes:
            raise CommandFailedError(f"trn {' '.join(arguments)} ended with exit code {code}")
        return code

    def trn_last_line(self, *arguments: str, quiet_options: tuple[str, ...] = ()) -> None:
        """Run `trn` and show only the last line of its output. The command is shown without `quiet_options`.

        Raises:
            CommandFailedError: The command failed.
        """
        self._show("trn", *arguments)
        run = subprocess.run(["trn", *arguments, *quiet_options], stdout=subprocess.PIPE, text=True, check=False)
        if run.returncode:
            raise CommandFailedError(f"{run.stdout}trn {' '.join(arguments)} ended with exit code {run.returncode}")
        self._screen.print(run.stdout.splitlines()[-1])

    def cdk(self, *arguments: str, quiet_options: tuple[str, ...] = (), cwd: Path) -> None:
        """Run the CDK CLI and show its progress. The command is shown without `quiet_options`.

        These options avoid prompts, needless work and files in the repository.

        Raises:
            CommandFailedError: The command failed.
        """
        self._show("cdk", *arguments)
        lines: list[str] = []
        with _Progress(self._screen) as progress:

            def on_line(line: str) -> None:
                lines.append(line)
                progress.update(line)

            code = run_cdk(["cdk", *arguments, *quiet_options], cwd, on_line)
        if code:
            raise CommandFailedError("\n".join([*lines, f"cdk ended with exit code {code}"]))

    def _show(self, *words: str) -> None:
        self._screen.print(f"\n$ {' '.join(words)}", style="bold cyan")


class _Progress:
    """The output of the CDK CLI, reduced to results, failures and a counter."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._status = Console().status("the CDK CLI is at work") if sys.stdout.isatty() else None
        self._shown = 0

    def __enter__(self) -> "_Progress":
        if self._status:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status:
            self._status.stop()

    def update(self, line: str) -> None:
        event = cdk_event(line)
        if event is None:
            if line.startswith(_OUTCOMES):
                self._screen.print(f"  {line}", style="dim")
            elif line and self._status:
                self._status.update(line[: self._screen.width - 4], spinner_style="cyan")
        elif event.failed:
            self._screen.print(f"  {event.status} {event.what}", style="red")
        else:
            self._count(event)

    def _count(self, event: CdkEvent) -> None:
        if self._status:
            counted = f"{event.counted}; {event.verb} {event.kind} {event.what}"
            self._status.update(counted[: self._screen.width - 4])
        elif event.done >= self._shown + _EVENTS_PER_LINE:
            self._shown = event.done
            self._screen.print(f"  {event.counted}, last: {event.verb} {event.kind}", style="dim")
