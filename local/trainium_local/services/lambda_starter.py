"""Processes for Lambda functions, which need not import boto3 each: lambda_zygote.py, started once, forks them."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ZYGOTE = Path(__file__).with_name("lambda_zygote.py")
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TZ")

_zygote: list[tuple[subprocess.Popen[bytes], socket.socket]] = []
_asking = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process ended."""

    code: int
    timed_out: bool


def passed_on() -> dict[str, str]:
    """What functions get of this process's environment."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}


def run(
    environment: Mapping[str, str], root: Path, stdin: Path, output: Path, timeout: float, command: Sequence[str]
) -> Ended:
    """Run `command`, by default lambda_bootstrap.py, in the folder `root` with this environment and no other.

    It reads the file `stdin` and prints into `output`. What it starts ends with it.
    """
    request = {"environment": environment, "root": str(root), "timeout": timeout, "command": command}
    request |= {"stdin": str(stdin), "output": str(output)}
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            _ask(theirs)
        answer = b""
        with suppress(OSError):  # of a zygote that somebody has killed
            ours.sendall(json.dumps(request).encode() + b"\n")
            answer = ours.makefile("rb").read()
    return Ended(**json.loads(answer)) if answer else Ended(code=-signal.SIGKILL, timed_out=False)


def _ask(connection: socket.socket) -> None:
    with _asking:
        if _zygote:
            with suppress(OSError):  # of one that has ended
                socket.send_fds(_zygote[0][1], [b"."], [connection.fileno()])
                return
        _zygote[:] = [_start()]
        socket.send_fds(_zygote[0][1], [b"."], [connection.fileno()])


def _start() -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", str(ZYGOTE)],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            # Its home is nowhere: botocore looks there for models when it is imported.
            env=passed_on() | {"HOME": os.devnull, "PYTHONDONTWRITEBYTECODE": "1"},
            start_new_session=True,
        )
    return process, ours
