"""Updates the record of the verification from what the watch has read."""

from __future__ import annotations

from typing import Any

from .cluster import Peers
from .hardware import DRAINING, FAILED
from .internode import NAME

SEVERITY = ("proven", DRAINING, FAILED)
OF_ALL_NODES = ("peers", NAME)
"""The checks that are made anew with each membership."""
REASONS = 5
"""At most so many in one sentence."""


def updated_record(
    record: dict[str, Any], failures: list[str], draining: list[str], peers: Peers | None, all_read: bool
) -> dict[str, Any]:
    """The record as it should be now, but for its time.

    record: as it is, by the verification or by the watch, which keeps the state of the verification under `verified`.
    peers: None leaves that part as it is. all_read: whether every source was read; if not, nothing is taken back.
    """
    new = dict(record)
    previous = record["state"], record["reason"]
    verified = tuple(new.pop("verified", previous))
    if verified[0] == FAILED:
        return record
    if peers:
        checks = [check for check in record["checks"] if check["name"] not in OF_ALL_NODES]
        new.update(membership=peers.membership, checks=checks + peers.checks)
        failures = failures + [peers.problem] * (peers.state == FAILED)
        draining = draining + [peers.problem] * (peers.state == DRAINING)
    now = verified
    for state, reasons in ((DRAINING, draining), (FAILED, failures)):
        if reasons:
            now = state, "; ".join(reasons[:REASONS])
    if not all_read and SEVERITY.index(now[0]) < SEVERITY.index(previous[0]):
        now = previous
    if now != verified:
        new["verified"] = list(verified)
    new["state"], new["reason"] = now
    return new
