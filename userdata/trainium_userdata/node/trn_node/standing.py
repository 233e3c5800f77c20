"""What the watch makes of the record that the verification left."""

from __future__ import annotations

from typing import Any

from .cluster import Peers
from .hardware import DRAINING, FAILED
from .internode import NAME

SEVERITY = ("proven", DRAINING, FAILED)
OF_ALL_NODES = ("peers", NAME)
"""The checks that are made anew with each roster."""
REASONS = 5
"""At most so many in one sentence."""


def stand(
    record: dict[str, Any], failures: list[str], drains: list[str], peers: Peers | None, all_known: bool
) -> dict[str, Any]:
    """The record as it should be now, but for its time.

    record: as it is, by the verification or by the watch, which keeps what the verification said under `verified`.
    peers: None leaves that part as it is. all_known: whether every source was read; if not, nothing is taken back.
    """
    new = dict(record)
    said = record["state"], record["reason"]
    verified = tuple(new.pop("verified", said))
    if verified[0] == FAILED:
        return record
    if peers:
        checks = [check for check in record["checks"] if check["name"] not in OF_ALL_NODES]
        new.update(roster=peers.roster, checks=checks + peers.checks)
        failures = failures + [peers.complaint] * (peers.state == FAILED)
        drains = drains + [peers.complaint] * (peers.state == DRAINING)
    now = verified
    for state, reasons in ((DRAINING, drains), (FAILED, failures)):
        if reasons:
            now = state, "; ".join(reasons[:REASONS])
    if not all_known and SEVERITY.index(now[0]) < SEVERITY.index(said[0]):
        now = said
    if now != verified:
        new["verified"] = list(verified)
    new["state"], new["reason"] = now
    return new
