"""Monitors a verified node: `trn-node watch`.

The watch reads the kernel log, the devices' error counters, AWS's notices and the membership, which has the notices to
all nodes; it updates the record and `notice.json`, and notifies running jobs. On a plain cluster, it also exchanges SSH
keys, starts this node's part of jobs, and reports the node's usage and metrics to S3.
"""

from __future__ import annotations

import compileall
import itertools
import json
import time
from collections.abc import Callable
from typing import Any

from trainium_wire.keys import USAGE_PREFIX, instance_key
from trainium_wire.logs import file_logger

from . import files, gpu, hardware, job_signals, notices, record, usage
from .cluster import IDLE_POLL_SECONDS, ClusterMembership, InternodeProcess, Peers, folder
from .cluster_job import ClusterJob
from .hardware import DRAINING, FAILED
from .imds import Imds
from .internode import NAME
from .notices import NOTICE, SIGNAL_SECONDS, InstanceNotice, iso
from .objects import Objects
from .programs import run

MEMORY = "run/trn/watch.json"
TICK = 5
SECONDS = {
    "kernel log": TICK,
    "counters": 60,
    **notices.SECONDS,
    "keys": 15,
    "usage": usage.SECONDS,
    "record": TICK,
    "sending": 15,
    "drain": 15,
}
"""The interval of each task; `ClusterMembership` and `ClusterJob` have their own. Most errors in the counters are also
in the kernel log at once."""
NOT_WITH_SLURM = ("keys", "usage", "job")
"""The tasks that a Slurm node does not have, because Slurm manages its nodes and jobs."""
ONLY_WITH_SLURM = ("drain",)
DRAIN_TIMEOUT_SECONDS = 60

DRAIN_SECONDS = 86400
"""How long before the end of a node its record becomes draining. A deployment waits while a record is draining, so this
is not weeks."""

MAX_ERRORS = 16
"""Maximum number of stored errors for each resulting state; more are not useful."""

SEVERITY = ("verified", DRAINING, FAILED)
MEMBERSHIP_CHECKS = ("peers", NAME)
"""The checks that are repeated with each membership."""
MAX_REASONS = 5
"""The maximum number of reasons in a record."""

_LOGGER = file_logger("trn_node")


def log(text: str) -> None:
    _LOGGER.info("%s", text[:500])


class Watch:
    """The watch of this node. `step` does what is due. `now` returns the time in seconds since 1970."""

    def __init__(self, imds: Imds, s3: Objects, now: Callable[[], float] = time.time) -> None:
        self._imds, self._s3, self._now = imds, s3, now
        self._due: dict[str, float] = {}
        self._errors: dict[str, str] = {}
        self._is_slurm_process, self._is_drained = _is_slurm_process(), False
        self._found: dict[str, list[InstanceNotice]] = {}
        self._repairable: dict[str, str] = {}
        self._unwritten: dict[str, Any] | None = None
        self._unsent: dict[str, Any] | None = None
        # State that survives a restart of the watch, but not a reboot.
        boot = files.read("proc/sys/kernel/random/boot_id")
        self._memory: dict[str, Any] = {"boot": boot, "seen": -1, "counts": {}, "errors": {}, "notified": []}
        try:
            before = json.loads(files.read(MEMORY))
            if before["boot"] == boot:
                self._memory.update(before)
        except (ValueError, LookupError, TypeError):
            pass
        if self._memory.get("unsent"):
            self._unsent = record.read()
        self._kernel_log = hardware.KernelLog(self._memory["seen"])
        self._cluster = ClusterMembership(s3, log, InternodeProcess())
        self._job = ClusterJob(s3, log, now, NOTICE)
        self.usage = usage.Usage(s3, on_errors=lambda: self._due.update(counters=0))

    def step(self) -> None:
        """Do the tasks that are due. An error in one task does not prevent the others."""
        # With Slurm, a membership has only notices.
        membership = IDLE_POLL_SECONDS if self._is_slurm_process else self._cluster.seconds
        tasks = {"membership": membership, **SECONDS, "job": self._job.seconds}
        for name, seconds in tasks.items():
            if name in (NOT_WITH_SLURM if self._is_slurm_process else ONLY_WITH_SLURM):
                continue
            # If the due time is further ahead, the clock was set back.
            if 0 < self._due.get(name, 0) - self._now() <= seconds:
                continue
            self._due[name] = self._now() + seconds
            message = ""
            try:
                self._poll(name)
            except Exception as error:
                message = f"{type(error).__name__}: {error}"
            if message != self._errors.get(name, ""):
                log(f"{name}: {message or 'works again'}")
            self._errors[name] = message

    @property
    def seconds(self) -> float:
        """Seconds until the next step."""
        return min(TICK, self._job.seconds)

    def wait(self) -> None:
        """Wait until the next step, or until this node's part of the job ends."""
        if self._job.wait(self.seconds):
            self._due["job"] = 0

    def _poll(self, name: str) -> None:
        own_record = record.read()
        if name == "kernel log":
            self._remember(self._kernel_log.errors())
            self._memory["seen"] = self._kernel_log.seen
        elif name == "counters":
            self._count()
        elif name == "membership":
            if own_record:
                self._set_notices(name, self._cluster.poll(own_record["instance_id"], self._now()))
        elif name == "keys":
            if own_record:
                self._cluster.exchange_keys(own_record["instance_id"])
        elif name == "job":
            if own_record:
                before = self._job.progress
                self._job.poll(own_record, self._cluster)
                if self._job.progress != before:
                    # The counters too: the next attempt must not start on a node that has failed in this one.
                    self._due["usage"] = self._due["counters"] = 0
        elif name == "usage":
            if own_record:
                url = instance_key(f"{folder()}/{USAGE_PREFIX}", files.own_name(own_record["instance_id"]))
                attempt = self._job.attempt_on(own_record["instance_id"])
                self.usage.poll(url, self._job.open_job, self._now(), attempt=attempt)
        elif name == "record":
            self._update_record(own_record)
        elif name == "drain":
            self._drain()
        elif name != "sending":
            self._set_notices(name, notices.parse(name, self._imds.get(name)))
        elif self._unsent:
            # Not record.send, which also sends the log.
            url = instance_key(files.locations()["TRN_REPORT_URL"], files.own_name(self._unsent["instance_id"]))
            self._s3.put(url, json.dumps(self._unsent).encode())
            self._unsent, self._memory["unsent"] = None, False

    def _drain(self) -> None:
        """Have Slurm start no further job here once this node has failed or ends soon. Raises OSError."""
        if not self._memory["notified"]:
            self._is_drained = False
        elif not self._is_drained:
            ended = run("trn-slurm", "drain", seconds=DRAIN_TIMEOUT_SECONDS)
            if ended.error:
                raise OSError(ended.error)
            self._is_drained = True

    def _count(self) -> None:
        has_gpus = files.path(usage.GPUS).exists()
        now = gpu.error_counts() if has_gpus else hardware.counters()
        if not now:
            raise OSError("the driver shows no counters of memory errors")
        # A reloaded driver counts from zero.
        before = {key: min(count, self._memory["counts"].get(key, count)) for key, count in now.items()}
        self._memory["counts"] = before
        states = dict.fromkeys(gpu.increases(before, now), FAILED) if has_gpus else hardware.increases(before, now)
        self._repairable = {text: state for text, state in states.items() if state == DRAINING}
        self._remember({text: state for text, state in states.items() if state == FAILED})

    def _remember(self, states: dict[str, str]) -> None:
        errors, has_failed = self._memory["errors"], False
        for text, state in states.items():
            if text not in errors and list(errors.values()).count(state) < MAX_ERRORS:
                log(f"{state or 'noted'}: {text}")
                errors[text] = state
                has_failed |= state == FAILED
        if has_failed:
            # The node may be terminated soon: sample the counters before the record is sent.
            self.usage.metrics.add_now(self._now())
            self._due["usage"] = 0

    def _set_notices(self, source: str, notices: list[InstanceNotice]) -> None:
        before = self._found.get(source, [])
        for notice in {*notices} ^ {*before}:
            log(f"{'notice' if notice in notices else 'withdrawn'}: {notice.reason} {iso(notice.at)}")
        self._found[source] = notices

    def _update_record(self, own_record: dict[str, Any] | None) -> None:
        """Update the notice and the record, and notify jobs."""
        now, memory = self._now(), self._memory
        errors = {**memory["errors"], **self._repairable}
        failures = [text for text in errors if errors[text] == FAILED]
        repairs = [text for text in errors if errors[text] == DRAINING]
        ends = sorted(itertools.chain(*self._found.values()), key=lambda notice: notice.at)
        urgent = [InstanceNotice("hardware", text, 0) for text in failures + repairs] + ends
        peers = self._cluster.peers
        is_in_membership = own_record is not None and own_record["membership"]
        all_read = {"membership", *notices.SECONDS} <= {*self._found} and bool(peers or not is_in_membership)
        for kind, reason, at in urgent[:1]:
            notice = {"kind": kind, "reason": reason, "at": iso(at), "seconds_left": max(0, int(at - now))}
            files.write(NOTICE, json.dumps(notice))
        if all_read and not urgent:
            files.path(NOTICE).unlink(missing_ok=True)
        keys = {f"{each.kind} {each.at}": each for each in urgent if each.at - now < SIGNAL_SECONDS}
        new = [key for key in keys if key not in memory["notified"]]
        # Saved before the signal, so that a restarted watch does not signal twice.
        memory["notified"] = [key for key in memory["notified"] if key in keys or not all_read] + new
        files.write(MEMORY, json.dumps(memory))
        for key in new:
            log(f"{keys[key].reason}: {job_signals.notify(keys[key].reason)}")
        if own_record:
            near = [each for each in ends if each.at - now < DRAIN_SECONDS]
            drains = repairs + [f"{each.reason}, {iso(each.at) or 'at any moment'}" for each in near]
            new_record = updated_record(own_record, failures, drains, peers, all_read)
            if new_record not in (own_record, self._unwritten):
                before, new_record = new_record, {**new_record, "time": iso(now)}
                # Saved before the record, so that a restarted watch does not consider the record sent.
                memory["unsent"] = True
                files.write(MEMORY, json.dumps(memory))
                record.write(new_record)
                # On a full disk the stored record does not change. The new one must not be sent at each step.
                self._unwritten = None if record.read() == new_record else before
                log(f"record: {new_record['state']} {new_record['reason']}")
                self._unsent, self._due["sending"] = new_record, 0


def updated_record(
    record: dict[str, Any], failures: list[str], draining: list[str], peers: Peers | None, all_read: bool
) -> dict[str, Any]:
    """The updated record, without a new time.

    Args:
        record: The current record, of the verification or of the watch. The watch stores the state of the verification
            as `verified`.
        failures: Reasons why the node has failed.
        draining: Reasons why the node is draining.
        peers: The result of the last test of the peers; None if there is none.
        all_read: Whether every source was read. Otherwise the state does not improve.
    """
    new = dict(record)
    previous = record["state"], record["reason"]
    verified = tuple(new.pop("verified", previous))
    if verified[0] == FAILED:
        return record
    if peers:
        checks = [check for check in record["checks"] if check["name"] not in MEMBERSHIP_CHECKS]
        new.update(membership=peers.membership, checks=checks + peers.checks)
        failures = failures + [peers.problem] * (peers.state == FAILED)
        draining = draining + [peers.problem] * (peers.state == DRAINING)
    now = verified
    for state, reasons in ((DRAINING, draining), (FAILED, failures)):
        if reasons:
            now = state, "; ".join(reasons[:MAX_REASONS])
    if not all_read and SEVERITY.index(now[0]) < SEVERITY.index(previous[0]):
        now = previous
    if now != verified:
        new["verified"] = list(verified)
    new["state"], new["reason"] = now
    return new


def _is_slurm_process() -> bool:
    try:
        return bool(files.plan().get("slurm"))
    except (OSError, ValueError):
        return False


def main() -> None:
    """Watch until the process is terminated."""
    # The user of jobs cannot write there, so without this Python would compile the modules at each start of a job.
    compileall.compile_dir(files.path("opt/trn"), quiet=2)
    imds = Imds(retries=1)
    watch = Watch(imds, Objects(imds, retries=1))
    if not _is_slurm_process():
        watch.usage.metrics.start()
    while True:
        watch.step()
        watch.wait()
