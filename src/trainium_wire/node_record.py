"""The record of a node: written by the node, read by functions and the command line.

A node writes its record after its verification, and again when its state, its checks or its membership change. A record
is one JSON object below the report URL in S3, which even a closed network reaches through the free gateway endpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal, get_args

from trainium_wire.formats import json_value, one_line, time_text

REPORT_URL_VARIABLE = "TRN_REPORT_URL"
"""Name of the shell variable in the user data with the S3 URL of the records' folder."""

State = Literal["verified", "failed", "draining"]
"""`draining`: verified, but will be interrupted soon, needs a repair, or does not reach other nodes: see `reason`."""


@dataclass(frozen=True)
class CheckRecord:
    """One check of a node.

    Attributes:
        expected: The value that the plan requires.
        found: The value on the node.
        ok: Whether the node passes the check, perhaps with a warning.
        warning: A problem that does not fail the node; empty if there is none.
    """

    name: str
    expected: str
    found: str
    ok: bool
    warning: str = ""


@dataclass(frozen=True)
class NodeRecord:
    """The state of one node.

    Attributes:
        time: Time of this state, in ISO 8601 and UTC.
        reason: Why the node is not verified; empty for a verified node.
        checks: The checks of the verification, and those of the last membership.
        address: Private IPv4 address of the node's first interface; empty if unknown.
        membership: Version of the last membership whose nodes it has tested; empty before the first one.
        slurm_node: The name of the node in Slurm on AWS PCS, such as `nodes-1`; empty on other clusters.
        verified: State and reason after the verification, if the node's watch has changed them since; otherwise empty.
    """

    instance_id: str
    state: State
    time: str
    reason: str = ""
    checks: tuple[CheckRecord, ...] = ()
    address: str = ""
    membership: str = ""
    slurm_node: str = ""
    verified: tuple[str, ...] = ()

    @property
    def warnings(self) -> str:
        """All problems that do not fail the node, in one text; empty if there are none."""
        return "; ".join(check.warning for check in self.checks if check.warning)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> NodeRecord:
        """Parse a record.

        Raises:
            ValueError: The text is not a record, or contradicts itself. The message has the reason.
        """
        try:
            raw: Any = json_value(text)
            state = raw["state"]
            if state not in get_args(State):
                raise ValueError(f"state is {state!r}, not one of {', '.join(get_args(State))}")
            record = cls(
                instance_id=str(raw["instance_id"]),
                state=state,
                reason=str(raw.get("reason", "")),
                checks=tuple(
                    CheckRecord(
                        name=str(c["name"]),
                        expected=str(c["expected"]),
                        found=str(c["found"]),
                        ok=c["ok"] is True,
                        warning=str(c.get("warning", "")),
                    )
                    for c in raw.get("checks", [])
                ),
                address=str(raw.get("address", "")),
                membership=str(raw.get("membership", "")),
                slurm_node=str(raw.get("slurm_node", "")),
                verified=tuple(map(str, raw.get("verified", ()))),
                time=str(raw["time"]),
            )
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise ValueError(f"not a node record: {error!r}") from error
        failed = [check.name for check in record.checks if not check.ok]
        if record.state == "verified" and failed:
            raise ValueError(f"contradicts itself: verified, although {', '.join(failed)} failed")
        return record


LARGEST_RECORD = 65_536
"""Bytes. Records are much smaller, even with long failures of every check."""

_LONGEST_REASON = 600


@dataclass(frozen=True)
class StoredRecord:
    """A record, and the time at which it was stored, by the clock of S3.

    Attributes:
        is_valid: Whether the node wrote this record. Otherwise its record is invalid, and its state is unknown.
    """

    record: NodeRecord
    written: datetime
    is_valid: bool = True

    @property
    def failed_verification(self) -> bool:
        """Whether the node has not been verified since it booted, so that no job has started on it."""
        return self.is_valid and self.record.state == "failed" and not self.record.verified


def stored_record(instance_id: str, text: str | None, written: datetime) -> StoredRecord:
    """The record of an instance. If the record is invalid, a failed one with the reason.

    The text is None if it is larger than LARGEST_RECORD and was not read.
    """
    record, is_valid = _read(instance_id, text, written)
    return StoredRecord(record=record, written=written, is_valid=is_valid)


def failures(records: Mapping[str, StoredRecord]) -> dict[str, datetime]:
    """When each failed instance reported its failure."""
    return {instance: stored.written for instance, stored in records.items() if stored.record.state == "failed"}


def _read(instance_id: str, text: str | None, written: datetime) -> tuple[NodeRecord, bool]:
    is_valid = True
    try:
        if text is None:
            raise ValueError(f"larger than {LARGEST_RECORD} bytes")
        record = NodeRecord.from_json(text)
        if record.instance_id != instance_id:
            raise ValueError(f"it is about {record.instance_id}")
    except ValueError as error:
        reason = f"its record cannot be used: {error}"
        record = NodeRecord(instance_id=instance_id, state="failed", reason=reason, time=time_text(written))
        is_valid = False
    reason = one_line(record.reason, _LONGEST_REASON)
    if record.state != "verified" and not reason:
        reason = "no reason is reported"
    return replace(record, reason=reason), is_valid
