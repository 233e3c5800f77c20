"""Programs of this machine, called so that a failure says what was called and what the program said."""

import subprocess
from pathlib import Path


class CommandError(Exception):
    """A program that ended with another exit code than 0."""


def run(*words: str | Path, folder: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """Run a program to its end and return its output. Raises CommandError with all that it said."""
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
