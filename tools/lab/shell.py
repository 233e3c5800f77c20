"""Runs programs of this machine. A failure reports the command and its output."""

import subprocess
from pathlib import Path


class CommandError(Exception):
    """A program ended with an exit code other than 0."""


def run(*words: str | Path, folder: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """Run a program and return its output.

    Raises:
        CommandError: The program failed. The message has all output.
    """
    command = [str(word) for word in words]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise CommandError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout
