"""The program of the verification's pods: verifies the node once in each boot, and removes its taint.

A pod that is not ready belongs to a node that is not verified.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from trainium_wire.formats import now_text
from trainium_wire.kubernetes import RUNNING
from trn_node import files, record, verify
from trn_node.check import CONTAINER, Check
from trn_node.imds import Imds

from .node_object import NodeObject

BOOT_ID = "proc/sys/kernel/random/boot_id"
READY = "tmp/trn-verified"
"""The file that the readiness probe looks for."""
BUSY_SECONDS = 30.0
"""Pause before the devices are tried again while other processes use them."""


def main() -> int:
    """Verify the node, and wait for the end of the pod. A failed node stays tainted until another pod verifies it."""
    signal.signal(signal.SIGTERM, end)
    try:
        node, boot = NodeObject(), files.read(BOOT_ID).strip()
        if not boot:
            raise OSError(f"/{BOOT_ID} cannot be read")
        if node.is_verified(boot) or verify_node(node, boot):
            files.write(READY, "")
    except (OSError, ValueError, LookupError) as error:
        # kubelet starts the container again.
        print(f"nothing was verified: {error}", file=sys.stderr)
        return 1
    while True:
        signal.pause()


def verify_node(node: NodeObject, boot: str) -> bool:
    """Verify the node while it is tainted, and store its record. Returns whether it is verified."""
    # The time of the first of pods that end in between.
    state = node.state()
    node.taint(state if state.startswith(RUNNING) else f"{RUNNING}{now_text()}")
    checks = run_checks(node)
    imds = Imds()
    made = record.make("verified" if all(check.ok for check in checks) else "failed", checks, imds)
    earlier = record.read() or {"state": "", "checks": []}
    if made["state"] == earlier["state"] == "failed":
        # The time of the first failure since the boot: the guard ends a failed node, however many pods verify it again.
        made["time"] = earlier.get("time", made["time"])
    made["checks"] = [*host_checks(earlier["checks"], made["checks"]), *made["checks"]]
    if record.report(made, imds) != "s3":
        made.update(state="failed", reason=made["reason"] or "the record did not reach S3: see the pod's log")
    if made["state"] != "verified":
        node.taint(f"failed: {made['reason']}")
        return False
    node.remove_taint(boot)
    return True


def run_checks(node: NodeObject) -> list[Check]:
    """The checks of a node whose devices no other process uses. Waits for that."""
    plan = {**files.plan(), "scope": CONTAINER}
    while True:
        try:
            return verify.run_checks(plan, last=True)
        except verify.BusyError as error:
            node.taint(f"waiting: {error}")
            time.sleep(float(os.environ.get("TRN_VERIFY_PAUSE") or BUSY_SECONDS))


def host_checks(earlier: list[dict[str, Any]], own: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The checks before kubelet started in this boot, from the host's record, without those that ran here again."""
    names = {check["name"] for check in own}
    return [check for check in earlier if check["name"] not in names]


def end(*_: object) -> None:
    """Kubernetes ends this pod."""
    os._exit(143)  # Python ignores SystemExit in a destructor. The end of a container ends all its processes.


if __name__ == "__main__":
    sys.exit(main())
