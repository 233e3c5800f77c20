"""Runs external programs with a time limit."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from typing import NamedTuple

from . import files

DROPPED_PREFIXES = ("CUDA_", "NEURON_", "XLA_", "JAX_", "PJRT_", "PYTHON", "TORCH_")
FOLDERS = ("opt/aws/neuron/bin", "opt/amazon/efa/bin", "opt/amazon/openmpi/bin")


class ProgramRun(NamedTuple):
    """The output of a program, and a sentence on its failure; `error` is empty if the exit code is 0."""

    out: str
    error: str


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of this process without variables of frameworks and Python, with FOLDERS on PATH and changes."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(DROPPED_PREFIXES)}
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *(str(files.path(folder)) for folder in FOLDERS)])
    return {**variables, "PATH": path, "LC_ALL": "C", **(changes or {})}


def run(
    *command: str,
    seconds: float,
    changes: Mapping[str, str] | None = None,
    stdin: str = "",
    folder: str = "/",
    user: str = "root",
) -> ProgramRun:
    """Run a program. After the time limit, kill it with its child processes.

    Args:
        command: Name of the program, and its arguments.
        seconds: The time limit.
        changes: Environment variables in addition to `environment`.
        stdin: Standard input.
        folder: Working directory.
        user: User of the program, if this process runs as root. The home of another user than root is the folder.
    """
    variables = environment(changes)
    prefix = () if user == "root" or os.geteuid() else ("runuser", "--preserve-environment", "-u", user, "--")
    if prefix:
        variables.update(HOME=folder, USER=user, LOGNAME=user)
    if prefix and not shutil.which(command[0], path=variables["PATH"]):
        return ProgramRun("", f"{command[0]} is not installed")
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
        return ProgramRun("", f"{command[0]} is not installed" if missing else f"{command[0]} does not run: {error}")
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
        # If this process is ended in the meantime, the program must not keep using NeuronCores.
        if process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
    if not error and process.returncode:
        message = one_line(err.decode(errors="replace")) or one_line(out.decode(errors="replace"))
        error = f"{command[0]} fails with exit code {process.returncode}: {message or 'no message'}"
    return ProgramRun(out.decode(errors="replace"), error)


def one_line(text: str) -> str:
    """The end of a text, which contains the error, as one printable line."""
    return " ".join(text.encode("ascii", "backslashreplace").decode().split())[-300:]
