"""Runs the setup or the command of a job in a login shell, and reads the output line by line."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from trainium_wire.job_folders import FOLDER_VARIABLES, quoted

from . import processes
from .failure import RANK
from .secrets import HIDDEN

FAIL_ON_ERROR = "set -eo pipefail"
"""Without it, only the exit code of the last command of a script and of each pipeline counts."""
LONGEST_LINE = 16384
DOTS = re.compile(r"^(?:\[rank \d+\] ?[.\s]*)+(?=\[rank \d+\] )")
WAITING = b"Another process must be compiling"
KEPT_VARIABLES = ("HOME", "LANG", "LOGNAME", "SHELL", "TZ", "USER")
"""The variables of this process to keep; the login shell sets the others."""
CLOSE_SECONDS = 5
"""How long to wait for output after all processes have ended."""


class Command:
    """A command, which starts at once in a new process group.

    Args:
        text: Lines of bash.
        script: File to write the lines to.
        folder: Working directory.
        variables: Variables to set after the profile.
        secrets: Variables that must not be written to a file. They are set before the profile, which may change them.
        venv: Virtual environment that is active in the profile.
        in_container: Whether to inherit the environment of this process instead of starting a login shell, whose
            profile would replace the PATH of the image.
        hidden: Texts to mask in a line that is split because it is longer than LONGEST_LINE.
        sink: Called in a thread with the rank at the start of a line, and the rest of the line.
        alive: Called for output that is a sign of life, including incomplete lines.
    """

    def __init__(
        self,
        text: str,
        *,
        script: Path,
        folder: Path,
        variables: Mapping[str, str],
        secrets: Mapping[str, str],
        venv: str | None,
        in_container: bool,
        hidden: Sequence[str],
        sink: Callable[[int | None, str], None],
        alive: Callable[[], None],
    ) -> None:
        # The profile has run before this: its commands may fail, and it may set some of the variables.
        lines = [FAIL_ON_ERROR, *(f"export {name}={quoted(value)}" for name, value in variables.items())]
        script.write_text("\n".join([*lines, f"cd {shlex.quote(str(folder))}", text, ""]))
        inherited = container() if in_container else login_shell()
        self._process = subprocess.Popen(
            ["bash", *([] if in_container else ["-l"]), str(script)],
            env={
                **inherited,
                **({"VIRTUAL_ENV": venv} if venv else {}),
                **secrets,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._sink, self._alive, self._hidden = sink, alive, [text.encode() for text in hidden]
        self._is_rest = False
        self._rank_of_rest: int | None = None
        self._reader = threading.Thread(target=self._read, name="output", daemon=True)
        self._reader.start()

    @property
    def exit_code(self) -> int | None:
        """The exit code; negative if a signal ended the command. None while it is running."""
        code = self._process.poll()
        # bash exits with 128 plus the number of the signal that ended a program.
        return 128 - code if code is not None and 128 < code <= 128 + signal.SIGRTMAX else code

    def wait(self, until: threading.Event, seconds: float = 0.2) -> None:
        """Wait until the command has ended, the event is set, or the time is over."""
        end = time.monotonic() + seconds
        while self.exit_code is None and not until.is_set() and time.monotonic() < end:
            until.wait(0.05)

    def end(self, grace: float) -> None:
        """End a running command with SIGTERM, kill all processes that remain, and read the remaining output.

        Args:
            grace: Seconds from SIGTERM to SIGKILL. If the command has already ended, SIGKILL is sent at once.
        """
        if self.exit_code is None:
            self._signal(signal.SIGTERM)
            deadline = time.monotonic() + grace
            while (self.exit_code is None or processes.descendants()) and time.monotonic() < deadline:
                time.sleep(0.05)
        processes.kill_all()
        self._process.wait()
        self._reader.join(CLOSE_SECONDS)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, number)

    def _read(self) -> None:
        assert self._process.stdout
        descriptor, left = self._process.stdout.fileno(), b""
        longest = LONGEST_LINE + max(map(len, self._hidden), default=0)
        while True:
            block = os.read(descriptor, 65536)
            if not block:
                break
            if shows_life(block):
                self._alive()
            *lines, left = (left + block).split(b"\n")
            for line in lines:
                self._pass_on(line, is_whole=True)
            for text in self._hidden if len(left) > longest else ():
                # Before the line is split: a text that is split with it would not be masked.
                left = left.replace(text, HIDDEN.encode())
            while len(left) > longest:
                self._pass_on(left[:LONGEST_LINE], is_whole=False)
                left = left[LONGEST_LINE:]
        if left:
            self._pass_on(left, is_whole=True)

    def _pass_on(self, line: bytes, *, is_whole: bool) -> None:
        """Pass a part of a line to the sink, with the rank at the start of the line.

        Args:
            line: The part.
            is_whole: Whether the line ends with this part.
        """
        text = line.decode(errors="replace")
        rank = self._rank_of_rest
        if not self._is_rest:
            rank, text = split_rank(text)
        self._is_rest, self._rank_of_rest = not is_whole, None if is_whole else rank
        self._sink(rank, text)


def split_rank(line: str) -> tuple[int | None, str]:
    """The rank at the start of a line of torchrun, and the rest.

    torchrun prefixes each write with the rank. Compilers write dots without line ends: `[rank 0] .[rank 0] Traceback`.
    Python without a buffer writes the end of a line separately: `[rank 0] TRN step=1[rank 0] `.
    """
    found = RANK.match(DOTS.sub("", line))
    return (int(found[1]), found[2]) if found else (None, line)


def shows_life(block: bytes) -> bool:
    """Whether output contains more than libneuronxla's message that another process is compiling.

    libneuronxla prints it once a minute. The other process may have died, and its lock may remain for hours (three and
    four hours in aws-neuron-sdk issues of 2023 to 2025).
    """
    lines = [line for line in re.split(rb"[\r\n]+", block) if line.strip()]
    return not lines or not all(WAITING in line for line in lines)


def login_shell() -> dict[str, str]:
    """The initial environment of a login shell; its profile sets the rest."""
    return {"PATH": os.defpath, **{name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}}


def container() -> dict[str, str]:
    """The environment of this process, without the folder of the files of the node program."""
    return {name: value for name, value in os.environ.items() if name != "ROOT"}


def variables(
    *, spec_environment: Mapping[str, str], job: str, attempt: int, nodes: int, rank: int, head: str, place: Path
) -> dict[str, str]:
    """The variables of a job, which are set after the profile. Those of `spec_environment` take precedence.

    `head` is the address of node 0, and `place` is the folder of the attempt.
    """
    return {
        "TRN_JOB": job,
        "TRN_ATTEMPT": str(attempt),
        "TRN_NODES": str(nodes),
        "TRN_NODE_RANK": str(rank),
        "HEAD_NODE": head,
        **{variable: str(place / folder) for folder, variable in FOLDER_VARIABLES.items()},
        "PYTHONFAULTHANDLER": "1",
        "PYTHONUNBUFFERED": "1",
        # torchrun: every line of a process begins with its rank.
        "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[rank ${rank}] ",
        "PET_TEE": "3",
        "PET_LOG_DIR": str(place / "torchrun"),
        **spec_environment,
    }
