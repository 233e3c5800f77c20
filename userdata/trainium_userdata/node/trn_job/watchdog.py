"""systemd's watchdog, which ends the unit of a frozen program. Other nodes do not notice one, because the kernel still
accepts connections for it.
"""

from __future__ import annotations

import os
import socket

from .periodic_thread import PeriodicThread

SHARE = 4
"""Messages per watchdog interval. systemd's manual recommends two (sd_watchdog_enabled)."""


def start() -> None:
    """Notify systemd that this process is running, until it ends. Does nothing without a watchdog."""
    address, microseconds = os.environ.get("NOTIFY_SOCKET"), os.environ.get("WATCHDOG_USEC")
    if address and microseconds:
        # An address that begins with @ is in Linux's abstract namespace.
        target = f"\0{address[1:]}" if address.startswith("@") else address
        seconds = int(microseconds) / 1e6 / SHARE
        PeriodicThread("watchdog", lambda: _report(target), lambda: seconds).start()


def _report(target: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"WATCHDOG=1", target)
