"""Runs one node's part of an attempt: python3 -m trn_job LAUNCH_FILE.

Exit codes: 0 if the attempt has succeeded, 1 if it has not, 2 if the arguments or the launch file are invalid, 5 if
results of this node are not in S3, or may not be because of an unexpected error.
"""

from __future__ import annotations

import os
import socket
import sys
import traceback

from trainium_wire.job import RESULTS_LOST_CODE
from trn_node.objects import Objects
from trn_node.secret_values import secret_value

from . import launch
from .attempt import NodeAttempt
from .periodic_thread import PeriodicThread
from .store import Store

RETRIES = 3
"""Retries of each request to S3, with pauses of seven seconds in total. Callers repeat important requests later."""
WATCHDOG_SHARE = 4
"""Messages per watchdog interval. systemd's manual recommends two (sd_watchdog_enabled)."""


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python3 -m trn_job LAUNCH_FILE", file=sys.stderr)
        return 2
    try:
        found = launch.read(arguments[0])
    except (OSError, ValueError, LookupError, TypeError) as error:
        message = f"{arguments[0]} is not a valid launch file: {type(error).__name__}: {error}"
        print(f"trn_job: {message}", file=sys.stderr)
        return 2
    start_watchdog()
    return run(NodeAttempt(found, Store(Objects(retries=RETRIES), found.url), secret_value))


def run(attempt: NodeAttempt) -> int:
    """Run the attempt. Returns the exit code of the program."""
    try:
        return attempt.run()
    except Exception:
        # Python's own exit code of an error would say that all results are stored.
        traceback.print_exc()
        return RESULTS_LOST_CODE


def start_watchdog() -> None:
    """Notify systemd that this process is running, until it ends. Does nothing without a watchdog.

    The watchdog ends the unit of a frozen program. Other nodes do not notice that a program is frozen, because the
    kernel still accepts its connections.
    """
    address, microseconds = os.environ.get("NOTIFY_SOCKET"), os.environ.get("WATCHDOG_USEC")
    if address and microseconds:
        # An address that begins with @ is in Linux's abstract namespace.
        target = f"\0{address[1:]}" if address.startswith("@") else address
        seconds = int(microseconds) / 1e6 / WATCHDOG_SHARE
        PeriodicThread("watchdog", lambda: _notify(target), lambda: seconds).start()


def _notify(target: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"WATCHDOG=1", target)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
