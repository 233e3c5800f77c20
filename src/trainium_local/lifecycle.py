"""The embedded AWS as a background process of the user: start, status, stop. Does not import moto.

One file, readable by its owner only, stores the address and the credentials of the current server. If the server at
this address does not prove that it has these credentials, the file is stale: no server is running.
"""

import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from trainium_local.environment import HOST, Connection, NotTheEmbeddedAwsError, open_private
from trainium_local.server import HEALTH_PATH, Health, Settings

START_SECONDS = 180.0
STOP_SECONDS = 60.0
LOG_TAIL = 15
STATE_FILE, LOG_FILE = "server.json", "server.log"


class LocalError(Exception):
    """The embedded AWS could not be started or stopped. The message is for the user."""


@dataclass(frozen=True, kw_only=True)
class Started:
    """A running server.

    Attributes:
        health: Its settings and state.
        connection: Its address and credentials.
        already: Whether it was running before `start`.
    """

    health: Health
    connection: Connection
    already: bool = False


def home(environ: Mapping[str, str]) -> Path:
    """Return the folder of the state and the log: TRN_LOCAL_HOME, or `trn` in the user's state folder."""
    own = environ.get("TRN_LOCAL_HOME")
    state = environ.get("XDG_STATE_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".local" / "state"
    return Path(own) if own else Path(state) / "trn"


def start(folder: Path, settings: Settings) -> Started:
    """Start the server unless it is running, and wait until it responds. Removes others' read access to the folder.

    Raises:
        LocalError: The server ended or does not respond, the port cannot be used, or others can write to the folder.
    """
    _make_private(folder)
    with _start_lock(folder):
        if running := _running(folder):
            return replace(running, already=True)
        _refuse_taken_port(settings.port)
        return _launch(folder, settings)


def status(folder: Path) -> Health | None:
    """Return the health of this folder's server, or None if none is running."""
    running = _running(folder)
    return running.health if running else None


def connection(folder: Path) -> Connection | None:
    """Return the connection to this folder's server, or None if none is running."""
    running = _running(folder)
    return running.connection if running else None


def stop(folder: Path) -> Health | None:
    """Stop this folder's server: all of its resources are lost.

    Returns:
        The health of the stopped server; None if none was running.

    Raises:
        LocalError: The process did not end in time.
    """
    running = status(folder)
    if running:
        # The server itself returned its process ID, so no other process is signalled.
        os.kill(running.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while status(folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        if status(folder):
            raise LocalError(
                f"process {running.pid} did not end within {STOP_SECONDS:.0f} s; stop it with: kill -9 {running.pid}"
            )
    _state(folder).unlink(missing_ok=True)
    return running


def _running(folder: Path) -> Started | None:
    try:
        connection = Connection.read(_state(folder))
        return Started(health=Health.from_json(connection.send("GET", HEALTH_PATH)), connection=connection)
    except (OSError, ValueError, NotTheEmbeddedAwsError):
        return None


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise LocalError(
            f"others can write to {folder}, where the credentials of the embedded AWS are stored. "
            f"Run `chmod 700 {folder}`, or set TRN_LOCAL_HOME to another folder."
        )
    folder.chmod(0o700)


def _launch(folder: Path, settings: Settings) -> Started:
    log, state = folder / LOG_FILE, _state(folder)
    state.unlink(missing_ok=True)
    settings_text = json.dumps(asdict(replace(settings, log=str(log))))
    command = [sys.executable, "-m", "trainium_local", "--settings", settings_text, "--ready-file", str(state)]
    with open(log, "w", opener=open_private) as output:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=folder,
            env={name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if running := _running(folder):
            return running
        if server.poll() is not None:
            raise LocalError(f"the embedded AWS did not start (exit code {server.returncode}).\n{_tail(log)}")
        time.sleep(0.05)
    server.kill()
    raise LocalError(f"the embedded AWS did not answer within {START_SECONDS:.0f} s.\n{_tail(log)}")


def _refuse_taken_port(port: int) -> None:
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        problem = "is taken by another program, or by an embedded AWS of another state folder"
        raise LocalError(
            f"port {port} {problem if is_taken else 'cannot be used'} ({error.strerror}). "
            "`trn local start --port 0` selects a free one."
        ) from error


@contextmanager
def _start_lock(folder: Path) -> Generator[None]:
    """Allow one start at a time, so that concurrent commands do not start two servers."""
    with open(folder / "lock", "w", opener=open_private) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _state(folder: Path) -> Path:
    return folder / STATE_FILE


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-LOG_TAIL:]
    if not lines and not shutil.disk_usage(log.parent).free:
        return f"No space is left in {log.parent}."
    return "\n".join(lines) or "(its log is empty)"
