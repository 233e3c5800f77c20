"""A node record as it is found in S3. Every process of a node can write there, so nothing in it is trusted."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from trainium_runtime.node_record import NodeRecord

LARGEST_RECORD = 65_536
"""Bytes. A real one, with every check failing at length, has a tenth of it."""

_LONGEST_REASON = 600


@dataclass(frozen=True, kw_only=True)
class StoredRecord:
    """A record, and when S3 stored it: by S3's clock, which no node can set."""

    record: NodeRecord
    written: datetime


def stored_record(instance_id: str, text: str | None, written: datetime) -> StoredRecord:
    """What was stored for an instance; what is no record of it is a failed one that says so.

    text: None when it is larger than LARGEST_RECORD, and was not read.
    """
    return StoredRecord(record=_read(instance_id, text, written), written=written)


def failures(records: Mapping[str, StoredRecord]) -> dict[str, datetime]:
    """When each failed instance wrote that it failed."""
    return {instance: stored.written for instance, stored in records.items() if stored.record.state == "failed"}


def one_line(text: str, limit: int) -> str:
    """Text of a node's own as one line of printable characters, cut to `limit`."""
    printable = "".join(character if character.isprintable() else " " for character in text[: 4 * limit])
    line = " ".join(printable.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _read(instance_id: str, text: str | None, written: datetime) -> NodeRecord:
    try:
        if text is None:
            raise ValueError(f"larger than {LARGEST_RECORD} bytes")
        record = NodeRecord.from_json(text)
        if record.instance_id != instance_id:
            raise ValueError(f"it is about {record.instance_id}")
    except (ValueError, RecursionError) as error:
        reason = f"its record cannot be used: {error or type(error).__name__}"
        time = f"{written:%Y-%m-%dT%H:%M:%SZ}"
        record = NodeRecord(instance_id=instance_id, state="failed", reason=reason, time=time)
    reason = one_line(record.reason, _LONGEST_REASON)
    if record.state != "proven" and not reason:
        reason = "it gave no reason"
    return replace(record, reason=reason)
