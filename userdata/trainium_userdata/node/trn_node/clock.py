"""Checks the clock: S3 rejects requests if it is off by more than 15 minutes."""

from __future__ import annotations

import contextlib

from .check import Check
from .programs import run
from .s3 import clock_offset

SECONDS = 30
MAX_OFFSET_SECONDS = 30
"""Far more than the error from a Date header in whole seconds and a slow response."""


def check_time() -> Check:
    offset = None
    with contextlib.suppress(OSError):
        offset = clock_offset()
    expected = f"synchronised, within {MAX_OFFSET_SECONDS} seconds"
    if offset is not None and abs(offset) > MAX_OFFSET_SECONDS:
        found = f"{abs(offset):.0f} seconds {'behind' if offset > 0 else 'ahead of'} S3's clock"
        problem = f"the clock is {found}; S3 refuses requests if the clocks differ by more than 900 seconds"
        return Check("time-sync", expected, found, False, problem)
    if not synchronised():
        problem = "the clock is not synchronised (chronyc tracking)"
        unsettled = Check("time-sync", expected, "not synchronised", False, problem)
        # If the offset is small, only a warning, because synchronisation may take longer than a boot.
        return unsettled if offset is None else unsettled.warned()
    found = "synchronised" if offset is None else f"synchronised, {abs(offset):.0f} seconds off S3's clock"
    return Check("time-sync", expected, found, True)


def synchronised() -> bool:
    if run("timedatectl", "show", "--property=NTPSynchronized", "--value", seconds=SECONDS).out.strip() == "yes":
        return True
    leap = [
        line for line in run("chronyc", "-n", "tracking", seconds=SECONDS).out.splitlines() if "Leap status" in line
    ]
    return any(line.split(":")[-1].strip() == "Normal" for line in leap)
