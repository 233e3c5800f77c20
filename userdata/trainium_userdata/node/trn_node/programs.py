"""Programs of others, run with a bound on their time."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from typing import NamedTuple

from . import files

DROPPED_PREFIXES = ("NEURON_", "XLA_", "JAX_", "PJRT_", "PYTHON", "TORCH_")
FOLDERS = ("opt/aws/neuron/bin", "opt/amazon/efa/bin", "opt/amazon/openmpi/bin")


class Run(NamedTuple):
    """error: what went wrong, in words; empty when the program ended with exit code 0."""

    out: str
    error: str


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's, without what steers Neuron and Python, and with the folders of Neuron's programs on the path."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(DROPPED_PREFIXES)}
    found = os.pathsep.join([os.environ.get("PATH", os.defpath), *(str(files.path(folder)) for folder in FOLDERS)])
    return {**kept, "PATH": found, "LC_ALL": "C", **(changes or {})}


def run(
    *command: str,
    seconds: float,
    changes: Mapping[str, str] | None = None,
    stdin: str = "",
    folder: str = "/",
    user: str = "root",
) -> Run:
    """Run a program to its end, or kill it and whatever it started. changes: of its environment variables.

    user: who runs it, if this process is root's; its home is the folder.
    """
    variables = environment(changes)
    prefix = () if user == "root" or os.geteuid() else ("runuser", "-u", user, "--")
    if prefix:
        variables.update(HOME=folder, USER=user, LOGNAME=user)
    if prefix and not shutil.which(command[0], path=variables["PATH"]):
        return Run("", f"{command[0]} is not installed")
    try:
        process = subprocess.Popen(
            (*prefix, *command),
            env=variables,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        return Run("", f"{command[0]} is not installed" if missing else f"{command[0]} does not run: {error}")
    error, out, err = "", b"", b""
    try:
        out, err = process.communicate(stdin.encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        error = f"{command[0]} does not end within {seconds:g} seconds"
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            out, err = process.communicate(timeout=5)
        except subprocess.TimeoutExpired as late:
            out = late.output or b""
    finally:
        # Processes that end meanwhile leave nothing behind that holds NeuronCores.
        if process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
    if not error and process.returncode:
        message = one_line(err.decode(errors="replace")) or one_line(out.decode(errors="replace"))
        error = f"{command[0]} fails with exit code {process.returncode}: {message or 'no message'}"
    return Run(out.decode(errors="replace"), error)


def one_line(text: str) -> str:
    """The end of a text, which says what went wrong, on one printable line."""
    return " ".join(text.encode("ascii", "backslashreplace").decode().split())[-300:]
