"""Updates the record of the verification with the findings of the watch."""

from __future__ import annotations

from typing import Any

from .cluster import Peers
from .hardware import DRAINING, FAILED
from .internode import NAME

SEVERITY = ("proven", DRAINING, FAILED)
OF_ALL_NODES = ("peers", NAME)
"""The checks that are repeated with each membership."""
REASONS = 5
"""The maximum number in a sentence."""


def updated_record(
    record: dict[str, Any], failures: list[str], draining: list[str], peers: Peers | None, all_read: bool
) -> dict[str, Any]:
    """The updated record, without a new time.

    record: the current one, of the verification or the watch, which stores the state of the verification as `verified`.
    peers: None: not changed. all_read: whether every source was read; otherwise nothing is removed.
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
