"""Starts the processes of Lambda functions: imports their common modules once, and forks for each invocation.

This script, like lambda_bootstrap.py, is not imported. It has one thread and no settings of an invocation. It ends when
the embedded AWS ends or is killed, because that closes the socket at its standard input.
"""

import contextlib
import ctypes
import json
import os
import runpy
import select
import signal
import socket
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import botocore.session

BOOTSTRAP = Path(__file__).with_name("lambda_bootstrap.py")
READ_AT_START = ("LANG", "LC_", "LD_", "PYTHON", "TZ")  # variables that only a new interpreter reads
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
OFTEN_CALLED = ("autoscaling", "cloudformation", "ec2", "lambda", "s3", "sns")


def warm_up() -> None:
    """Let botocore import and read everything that the first client needs, so that later clients reuse it."""
    botocore.session.create_loader = cache(botocore.session.create_loader)
    session = boto3.Session("nobody", "nothing", region_name="us-east-1")
    for service in OFTEN_CALLED:
        session.client(service)


def next_invocation(requests: socket.socket) -> list[int]:
    """Wait for requests. Returns in a process forked for one of them, with the request's files."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forked processes leave no zombies
    while True:
        message, files, _, _ = socket.recv_fds(requests, 1, 3)
        if not message:
            sys.exit()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            requests.close()
            return files
        for file in files:
            os.close(file)


def become_function(stdin: int, output: int, connection: socket.socket) -> dict[str, Any]:
    """Fork the function's process and return in it. The parent watches it, and reports its exit."""
    line = connection.makefile("rb").readline()
    if not line:
        os._exit(0)
    request = json.loads(line)
    # Orphaned descendants of the function become children of this process, even from another session.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    function = os.fork()
    if function == 0:
        os.setsid()
        connection.close()
        for own, source in enumerate((stdin, output, output)):
            os.dup2(source, own)
        os.close(stdin)
        os.close(output)
        return request
    os.close(output)
    ended = os.pidfd_open(function)
    # The connection becomes readable only when the embedded AWS has ended.
    first, _, _ = select.select([ended, connection], [], [], request["timeout"])
    # The function's process ID cannot be reused before waitpid.
    os.kill(function, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(function, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(function, 0)[1])
    end_children()
    with contextlib.suppress(OSError):
        connection.sendall(json.dumps({"code": code, "timed_out": not first}).encode())
    os._exit(0)


def end_children() -> None:
    """End all children and their descendants, which become children of this process."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        for child in children.read_text().split():
            os.kill(int(child), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def needs_new_interpreter(environment: Mapping[str, str], root: Path) -> bool:
    """Return whether the function needs a new interpreter.

    It does if variables that are read at start differ, or if its code contains modules that are already imported.
    """
    imported = {name.partition(".")[0] for name in sys.modules}
    brought = {entry.name.partition(".")[0] for entry in root.iterdir()}
    return _read_at_start(environment) != _read_at_start(os.environ) or bool(imported & brought)


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}


def main() -> None:
    warm_up()
    stdin, output, connection = next_invocation(socket.socket(fileno=sys.stdin.fileno()))
    request = become_function(stdin, output, socket.socket(fileno=connection))
    environment, root = request["environment"], Path(request["root"])
    os.chdir(root)
    if needs_new_interpreter(environment, root):
        os.execve(sys.executable, [sys.executable, "-P", str(BOOTSTRAP)], environment)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = False  # the code is the same for all invocations
    runpy.run_path(str(BOOTSTRAP), run_name="__main__")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a normal exit would write to, and so copy, the memory shared with the fork server


if __name__ == "__main__":
    main()
