"""`trn` and the server of the embedded AWS, as forks of a process that has already imported their modules.

Each worker of pytest-xdist has one such process: multiprocessing's fork server. Without it, each start spends one to
three seconds on imports. The demo starts the real programs.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

from trainium_local import lifecycle
from trainium_local.environment import Connection
from trainium_local.server import Settings

SECONDS = 480.0
START_SECONDS = 300.0

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["tests.preloaded"])


def run_trn(
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    stderr_apart: bool = False,
    started: Callable[[int], None] = lambda pid: None,  # noqa: ARG005
) -> "subprocess.CompletedProcess[str]":
    """Run `trn` to its end, with empty input.

    Args:
        stderr_apart: Keep standard error separate. Default: all output is in `stdout`.
        started: Is called with the ID of the process before `trn` begins.

    Raises:
        TimeoutError: `trn` does not end within SECONDS.
    """
    with tempfile.NamedTemporaryFile() as stdout, tempfile.NamedTemporaryFile() as stderr:
        streams = (stdout.name, stderr.name if stderr_apart else stdout.name)
        go, told = _forks.Pipe()
        process = _forks.Process(target=_trn, args=(list(arguments), str(folder), dict(environment), streams, told))
        process.start()
        assert process.pid is not None
        started(process.pid)
        go.send("go")
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"trn {' '.join(arguments)} did not end: {_text(stdout)}")
        return subprocess.CompletedProcess(["trn", *arguments], process.exitcode, _text(stdout), _text(stderr))


def start_server(folder: Path, settings: Settings) -> Connection:
    """Start an embedded AWS, with its state and log where `lifecycle` looks for them; `lifecycle.stop` ends it."""
    log = folder / lifecycle.LOG_FILE
    given = asdict(replace(settings, log=str(log)))
    process = _forks.Process(target=_serve, args=(given, str(folder / lifecycle.STATE_FILE), str(log)), daemon=True)
    process.start()
    deadline = time.monotonic() + START_SECONDS
    while process.is_alive() and time.monotonic() < deadline:
        if connection := lifecycle.connection(folder):
            return connection
        time.sleep(0.02)
    raise RuntimeError(f"the embedded AWS did not start:\n{log.read_text()}")


def _trn(arguments: list[str], folder: str, environment: dict[str, str], streams: tuple[str, str], told: Any) -> None:
    from trainium_cli.main import main

    told.recv()
    _redirect(*streams)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv[:] = ["trn", *arguments]
    sys.path.insert(0, str(Path(sys.executable).parent))
    main()


def _serve(settings: dict[str, Any], state: str, log: str) -> None:
    from trainium_local import __main__ as program

    _redirect(log, log)
    os.chdir(Path(log).parent)
    threading.Thread(target=_end_with_the_tests, daemon=True).start()
    program.run(Settings(**settings), ready_file=Path(state))


def _end_with_the_tests() -> None:
    """End this process with the process of the tests, which may be killed before it stops the server."""
    tests = multiprocessing.parent_process()
    assert tests is not None
    tests.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _redirect(stdout: str, stderr: str) -> None:
    for stream, file, flags in ((0, os.devnull, 0), (1, stdout, os.O_WRONLY), (2, stderr, os.O_WRONLY)):
        opened = os.open(file, flags | (os.O_APPEND | os.O_CREAT if flags else 0), 0o600)
        os.dup2(opened, stream)
        os.close(opened)


def _text(file: "IO[bytes]") -> str:
    return Path(file.name).read_text()
