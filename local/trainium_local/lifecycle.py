"""The embedded AWS as a background process of this user: start, status, stop. Imports no moto.

Its state is one file: the health it reported when it began to answer. What is true now is asked of the server; a file
whose process is gone, or whose port is answered by somebody else, is stale and means that nothing runs.
"""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trainium_local.environment import HOST
from trainium_local.server import HEALTH_PATH, Health, Settings

START_SECONDS = 60.0
STOP_SECONDS = 10.0
LOG_TAIL = 15


class LocalError(Exception):
    """The embedded AWS could not be started or stopped; the message is for the user."""


@dataclass(frozen=True, kw_only=True)
class Started:
    """The server that answers now; `already` when it ran before."""

    health: Health
    already: bool


def home(environ: Mapping[str, str]) -> Path:
    """Folder of the state and the log: TRN_LOCAL_HOME, else `trn` in the user's state folder."""
    own = environ.get("TRN_LOCAL_HOME")
    state = environ.get("XDG_STATE_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".local" / "state"
    return Path(own) if own else Path(state) / "trn"


def start(folder: Path, settings: Settings) -> Started:
    """Start the server unless one runs, and wait until it answers. Raises LocalError with the end of its log."""
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        running = status(folder)
        if running:
            return Started(health=running, already=True)
        _refuse_taken_port(settings.port)
        return Started(health=_launch(folder, settings), already=False)


def status(folder: Path) -> Health | None:
    """The server of this folder as it answers now, or None when none runs."""
    try:
        known = json.loads(_state(folder).read_text())
        endpoint, pid = str(known["endpoint"]), int(known["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    health = _ask(endpoint)
    return health if health and health.pid == pid else None


def stop(folder: Path) -> Health | None:
    """Stop the server of this folder; None when none ran. What was created in it is gone."""
    running = status(folder)
    if running:
        # The server itself has just named its process: no other is hit.
        os.kill(running.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while _ask(running.endpoint) and time.monotonic() < deadline:
            time.sleep(0.05)
        if _ask(running.endpoint):
            raise LocalError(
                f"process {running.pid} did not end within {STOP_SECONDS:.0f} s; stop it with: kill -9 {running.pid}"
            )
    _state(folder).unlink(missing_ok=True)
    return running


def _launch(folder: Path, settings: Settings) -> Health:
    log, state = folder / "server.log", _state(folder)
    state.unlink(missing_ok=True)
    command = [sys.executable, "-m", "trainium_local", "--port", str(settings.port), "--region", settings.region]
    command += ["--fail-nodes", str(settings.fail_nodes), "--log", str(log), "--ready-file", str(state)]
    if not settings.stand_in_nodes:
        command.append("--no-stand-in-nodes")
    for code, value in settings.quotas.items():
        command += ["--quota", f"{code}={value:g}"]
    with log.open("w") as output:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, cwd=folder
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if health := status(folder):
            return health
        if server.poll() is not None:
            raise LocalError(f"the embedded AWS ended at once (exit code {server.returncode}).\n{_tail(log)}")
        time.sleep(0.05)
    server.kill()
    raise LocalError(f"the embedded AWS did not answer within {START_SECONDS:.0f} s.\n{_tail(log)}")


def _refuse_taken_port(port: int) -> None:
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        stranger = _ask(f"http://{HOST}:{port}", seconds=1)
        owner = (
            f"an embedded AWS of another state folder (process {stranger.pid}, log {stranger.log})"
            if stranger
            else f"another program ({error.strerror})"
        )
        raise LocalError(
            f"port {port} is taken by {owner}. Choose another with --port, or --port 0 for a free one."
        ) from error


def _ask(endpoint: str, *, seconds: float = 10) -> Health | None:
    """Long enough for a busy machine: an answer that is late must not look like a server that is gone."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{endpoint}{HEALTH_PATH}", timeout=seconds) as answer:
            return Health.from_json(answer.read())
    except (urllib.error.URLError, OSError, ValueError):
        return None


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """One start at a time, so that two commands at once do not start two servers."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _state(folder: Path) -> Path:
    return folder / "server.json"


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_TAIL:]) or "(its log is empty)"
