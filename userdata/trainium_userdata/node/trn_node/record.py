"""The node's record, on disk and in S3. If S3 cannot be reached, the reason is written to the console."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainium_wire.formats import now_text
from trainium_wire.keys import LOGS_PREFIX, instance_key

from . import files
from .imds import Imds
from .s3 import S3

if TYPE_CHECKING:
    # The user data does not contain this module.
    from .check import Check

LOG = "var/log/trn-node.log"
_LOGGER = logging.getLogger("trn_node")
"""Without a handler, as in user data, it writes lines to standard error."""

LOG_BYTES = 1_000_000
"""Only the end of the log is sent, which contains the failure."""


def make(state: str, checks: Sequence[Check], imds: Imds) -> dict[str, Any]:
    """A new record, whose reason consists of the checks' problems."""
    wrong = [check for check in checks if not check.ok]
    problems = [check.problem for check in wrong if check.problem]
    reason = "; ".join(problems or [f"{check.name}: {check.found}" for check in wrong])
    record = {"instance_id": "", "state": state, "reason": reason, "address": "", "membership": ""}
    # Set in lifecycle actions (AWS PCS User Guide).
    record["slurm_node"] = os.environ.get("PCS_NODE_ID", "")
    try:
        record["instance_id"] = imds.get("instance-id") or ""
        record["address"] = imds.get("local-ipv4") or ""
    except OSError as error:
        _LOGGER.warning("%s", error)
    # Written by cloud-init from the metadata service.
    record["instance_id"] = record["instance_id"] or instance_id()
    return {**record, "checks": [check.to_json() for check in checks], "time": now_text()}


def read() -> dict[str, Any] | None:
    """The record on this node; None if it cannot be read, or belongs to another node, as in a baked image."""
    try:
        record = json.loads(files.read(files.RECORD))
        is_own = record["instance_id"] == (instance_id() or record["instance_id"])
        return record if is_own and record["state"] and record["checks"] is not None else None
    except (ValueError, LookupError, TypeError):
        return None


def instance_id() -> str:
    """From cloud-init, at this boot; empty without cloud-init."""
    return files.read("var/lib/cloud/data/instance-id").strip()


def write(record: dict[str, Any]) -> None:
    """Write the record to disk. If the disk is full, it can still be sent."""
    try:
        files.write(files.RECORD, json.dumps(record, indent=2) + "\n")
    except OSError as error:
        _LOGGER.warning("%s: %s", files.RECORD, error)


def report(record: dict[str, Any], imds: Imds) -> str:
    """Store and send the record and the log. Returns where it was sent: "s3", "console", or an empty text."""
    write(record)
    try:
        if not record["instance_id"]:
            raise OSError("the instance ID is unknown")
        send(record, imds)
    except OSError as error:
        lost = f"the record did not reach S3: {error}"
        return write_to_console("; ".join(filter(None, (record["reason"], lost))))
    return "s3"


def send(record: dict[str, Any], imds: Imds | None = None) -> None:
    """Send the record and the log. Raises OSError if the record is not stored."""
    s3 = S3(imds)
    url, name = files.location("TRN_REPORT_URL").rstrip("/"), files.own_name(record["instance_id"])
    s3.put(instance_key(url, name), json.dumps(record, indent=2).encode())
    try:
        log = files.path(LOG).read_bytes()[-LOG_BYTES:]
        s3.put(f"{url.rsplit('/', 1)[0]}/{LOGS_PREFIX}/{name}.log", log, "text/plain")
    except OSError as error:
        _LOGGER.warning("the log was not stored: %s", error)


def write_to_console(reason: str) -> str:
    line = f"trn-node FAILED: {reason}"
    _LOGGER.error("%s", line)
    try:
        with files.path("dev/console").open("a") as console:
            console.write(f"\n{line}\n")
    except OSError as error:
        _LOGGER.error("/dev/console: %s", error)
        return ""
    return "console"
