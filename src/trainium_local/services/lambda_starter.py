"""Starts processes for Lambda functions without importing boto3 each time: forks of lambda_fork_server.py."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FORK_SERVER = Path(__file__).with_name("lambda_fork_server.py")
INHERITED_VARIABLES = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TZ")

_fork_server: list[tuple[subprocess.Popen[bytes], socket.socket]] = []
_lock = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The exit of a process, and its output."""

    code: int
    timed_out: bool
    printed: bytes


def inherited_environment() -> dict[str, str]:
    """Return the variables of this process's environment that functions receive."""
    return {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}


def run(environment: Mapping[str, str], root: Path, stdin: bytes, timeout: float) -> Ended:
    """Run lambda_bootstrap.py in the folder `root` with only this environment.

    The processes that the script started are killed when it ends.
    """
    request = {"environment": dict(environment), "root": str(root), "timeout": timeout}
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    with ours, os.fdopen(reading, "rb") as output, tempfile.TemporaryFile() as stdin_file:
        stdin_file.write(stdin)
        stdin_file.seek(0)
        with theirs, os.fdopen(writing, "wb"):
            _send_request(stdin_file.fileno(), writing, theirs.fileno())
        printed = answer = b""
        with suppress(OSError):  # from a killed fork server
            ours.sendall(json.dumps(request).encode() + b"\n")
            printed = output.read()
            answer = ours.makefile("rb").read()
    if not answer:
        return Ended(code=-signal.SIGKILL, timed_out=False, printed=printed)
    return Ended(**json.loads(answer), printed=printed)


def _send_request(*files: int) -> None:
    with _lock:
        if _fork_server:
            with suppress(OSError):  # from one that has ended
                socket.send_fds(_fork_server[0][1], [b"."], files)
                return
        start_fork_server()
        socket.send_fds(_fork_server[0][1], [b"."], files)


def start_fork_server() -> None:
    """Start the fork server. Otherwise the first invocation starts it."""
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", str(FORK_SERVER)],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            # At import, botocore derives a folder of models from HOME.
            env=inherited_environment() | {"HOME": os.devnull, "PYTHONDONTWRITEBYTECODE": "1"},
            start_new_session=True,
        )
    _fork_server[:] = [(process, ours)]
