"""systemd's watchdog: it ends the unit of a program that was frozen, which would hold its node for ever.

To its neighbours such a program looks well: the kernel accepts connections for it.
"""

from __future__ import annotations

import os
import socket

from .periodic_thread import PeriodicThread

SHARE = 4
"""Messages in each interval after which systemd misses one. systemd's manual advises two (sd_watchdog_enabled)."""


def start() -> None:
    """Report to systemd that this process runs, until it ends. Does nothing where no watchdog was asked for."""
    address, microseconds = os.environ.get("NOTIFY_SOCKET"), os.environ.get("WATCHDOG_USEC")
    if address and microseconds:
        # An address that begins with @ is of Linux' abstract namespace.
        target = f"\0{address[1:]}" if address.startswith("@") else address
        seconds = int(microseconds) / 1e6 / SHARE
        PeriodicThread("watchdog", lambda: _report(target), lambda: seconds).start()


def _report(target: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"WATCHDOG=1", target)
