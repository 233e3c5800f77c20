"""Runs the project's Python programs in processes forked from one that has imported what they import.

The start of `trn` takes most of a second, nearly all of it for imports. All else is as in an interpreter of its own:
folder, environment, arguments, streams, signals and exit code. Those who look at the start itself use `subprocess`.

Run as a program, this module is the process that is forked, one for all workers of pytest-xdist.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, NoReturn

from tests import shared
from tests.shared import READ_AT_START

SECONDS = 180.0


@dataclass(frozen=True, kw_only=True)
class Program:
    """What to run: `module` as `python -m` does, or its `function`, as a console script does.

    imports: modules to have imported. services: those whose models botocore is to have read.
    """

    module: str
    function: str = ""
    imports: tuple[str, ...] = ()
    services: tuple[str, ...] = ()


class Process:
    """A program that runs, with those methods of `subprocess.Popen` that are wanted. pid: no child of this process."""

    def __init__(self, pid: int, status: socket.socket) -> None:
        self.pid = pid
        self._status = status
        self._code: int | None = None

    def wait(self, timeout: float) -> int:
        """Its exit code. Raises TimeoutError when it does not end."""
        if self._code is None:
            self._status.settimeout(timeout)
            self._code = int(self._status.recv(100))
            self._status.close()
        return self._code

    def poll(self) -> int | None:
        has_ended = self._code is not None or select.select([self._status], [], [], 0)[0]
        return self.wait(SECONDS) if has_ended else None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def start(
    program: Program,
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    stdout: IO[bytes],
    stderr: IO[bytes],
    started: Callable[[int], None] = lambda pid: None,  # noqa: ARG005
) -> Process:
    """Start a program with nothing to read. started: called with the id of the process before it does anything."""
    ours, theirs = socket.socketpair()
    with theirs, Path(os.devnull).open("rb") as nothing, _connect(program, environment) as zygote:
        files = [*(file.fileno() for file in (nothing, stdout, stderr)), theirs.fileno()]
        socket.send_fds(zygote, [b"."], files)
    request = {"arguments": list(arguments), "folder": str(folder), "environment": dict(environment)}
    ours.settimeout(SECONDS)
    ours.sendall(json.dumps(request).encode() + b"\n")
    pid = int(ours.recv(100))
    started(pid)
    ours.sendall(b"go\n")
    return Process(pid, ours)


def run(
    program: Program,
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    stderr_apart: bool = False,
    started: Callable[[int], None] = lambda pid: None,  # noqa: ARG005
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, with nothing to read. Raises TimeoutError when it does not end.

    started: called with the id of the process before it does anything. stderr_apart: else all is in `stdout`.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = start(
            program,
            arguments,
            folder=folder,
            environment=environment,
            stdout=stdout,
            stderr=stderr if stderr_apart else stdout,
            started=started,
        )
        try:
            code = process.wait(SECONDS)
        except TimeoutError:
            process.send_signal(signal.SIGKILL)
            process.wait(SECONDS)
            raise
        return subprocess.CompletedProcess([program.module, *arguments], code, _text(stdout), _text(stderr))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _connect(program: Program, environment: Mapping[str, str]) -> socket.socket:
    """The way to the zygote of a program and of what a new interpreter would heed of an environment."""
    others = {name: value for name, value in os.environ.items() if not name.startswith((*READ_AT_START, "AWS_"))}
    heeded = {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}
    return shared.connect(["-m", "tests.program_zygote", json.dumps(asdict(program))], others | heeded)


def _warm_up(program: Program) -> None:
    for module in program.imports:
        import_module(module)
    if program.services:
        import boto3
        import botocore.session

        from trainium_local.services.lambda_zygote import share_models

        botocore.session.create_loader = cache(botocore.session.create_loader)
        share_models()
        loader = botocore.session.create_loader(None)
        nobody = boto3.Session("nobody", "nothing", region_name="us-east-1")
        for service in program.services:
            nobody.client(service)
            loader.load_service_model(service, "paginators-1")


def _next_run() -> list[int]:
    """Wait for requests. Returns in a process forked for one of them, with the files that came with it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those processes
    for request in shared.requests():
        with request:
            _, files, _, _ = socket.recv_fds(request, 1, 4)
            if files and os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return files
        for file in files:
            os.close(file)
    sys.exit()


def _become_program(streams: Sequence[int], status: socket.socket) -> dict[str, object]:
    """Fork the process of the program, and return in it. The one forked from reports its id, and how it ended."""
    parameters = status.makefile("r")
    request: dict[str, object] = json.loads(parameters.readline())
    pid = os.fork()
    if pid == 0:
        for own, given in enumerate(streams):
            os.dup2(given, own)
        for given in streams:
            os.close(given)
        begin = parameters.readline()
        parameters.close()
        status.close()
        if not begin:
            os._exit(1)
        return request
    with suppress(OSError):
        status.sendall(f"{pid}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(OSError):
        status.sendall(f"{code}\n".encode())
    os._exit(0)


def main() -> None:
    given = json.loads(sys.argv[1])
    del sys.path[0]  # the folder that this module was found in
    program = Program(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
    gc.disable()  # half of the time of the imports
    _warm_up(program)
    gc.collect()
    gc.freeze()
    gc.enable()
    *streams, status = _next_run()
    request = _become_program(streams, socket.socket(fileno=status))
    os.chdir(str(request["folder"]))
    os.environ.clear()
    os.environ.update(request["environment"])  # pyright: ignore
    sys.argv[:] = [program.module, *request["arguments"]]  # pyright: ignore
    try:
        if program.function:
            sys.path.insert(0, str(Path(sys.executable).parent))
            sys.exit(getattr(import_module(program.module), program.function)())
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(program.module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise  # with a message, which the interpreter prints
        _end(end.code or 0)


def _end(code: int) -> NoReturn:
    """End as an interpreter does that need not free its memory: to do so would write to all that the zygote shares."""
    threading._shutdown()  # pyright: ignore
    atexit._run_exitfuncs()  # pyright: ignore
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
