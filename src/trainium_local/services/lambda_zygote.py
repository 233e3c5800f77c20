"""Starts the processes of Lambda functions: it has imported what they import, and forks one for each invocation.

A script of its own, as the one that they run. It has one thread and no setting of any invocation, and it ends when the
embedded AWS does, however that ends: the socket at its standard input is closed then.
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
READ_AT_START = ("LANG", "LC_", "LD_", "PYTHON", "TZ")  # what only a new interpreter would heed
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
OFTEN_CALLED = ("autoscaling", "cloudformation", "ec2", "lambda", "s3", "sns")


def warm_up() -> None:
    """Have botocore import and read what it does with the first client; later ones find its models read."""
    botocore.session.create_loader = cache(botocore.session.create_loader)
    session = boto3.Session("nobody", "nothing", region_name="us-east-1")
    for service in OFTEN_CALLED:
        session.client(service)


def next_invocation(requests: socket.socket) -> list[int]:
    """Wait for requests. Returns in a process forked for one of them, with the files that came with it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those processes are not waited for
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
    """Fork the process of the function, and return in it. The one forked from watches it, and reports how it ended."""
    line = connection.makefile("rb").readline()
    if not line:
        os._exit(0)
    request = json.loads(line)
    # What the function starts becomes a child of this process when its parent ends, whatever session it is in.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    function = os.fork()
    if function == 0:
        os.setsid()
        connection.close()
        for own, given in enumerate((stdin, output, output)):
            os.dup2(given, own)
        os.close(stdin)
        os.close(output)
        return request
    os.close(output)
    ended = os.pidfd_open(function)
    # The connection has something to tell only when the embedded AWS is gone.
    first, _, _ = select.select([ended, connection], [], [], request["timeout"])
    # With its child processes, and before it is waited for: until then its id cannot be reused.
    os.kill(function, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(function, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(function, 0)[1])
    end_children()
    with contextlib.suppress(OSError):
        connection.sendall(json.dumps({"code": code, "timed_out": not first}).encode())
    os._exit(0)


def end_children() -> None:
    """End all children, and theirs, which become children of this process."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        for child in children.read_text().split():
            os.kill(int(child), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def needs_an_interpreter_of_its_own(environment: Mapping[str, str], root: Path) -> bool:
    """Whether one of its own would differ: this one has read other settings, or imported what the function brings."""
    imported = {name.partition(".")[0] for name in sys.modules}
    layer = Path(environment.get("TRN_LAMBDA_LAYERS", root), "python")
    brought = {
        entry.name.partition(".")[0] for folder in (root, layer) if folder.is_dir() for entry in folder.iterdir()
    }
    return _read_at_start(environment) != _read_at_start(os.environ) or bool(imported & brought)


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}


def main() -> None:
    warm_up()
    stdin, output, connection = next_invocation(socket.socket(fileno=sys.stdin.fileno()))
    request = become_function(stdin, output, socket.socket(fileno=connection))
    environment, root = request["environment"], Path(request["root"])
    os.chdir(root)
    if needs_an_interpreter_of_its_own(environment, root):
        os.execve(sys.executable, [sys.executable, "-P", str(BOOTSTRAP)], environment)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = False  # the code is the same for all invocations
    runpy.run_path(str(BOOTSTRAP), run_name="__main__")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # ending the interpreter would write to, and so copy, all memory that it shares with the zygote


if __name__ == "__main__":
    main()
