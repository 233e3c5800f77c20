"""Simulates the nodes of a deployment, because the instances of the embedded AWS run no programs.

A node writes a record about itself to S3, and a deployment waits for this record. This module writes the record of an
instance of an Auto Scaling group, if the user data names the folder of the record, and updates the record once the
membership exists. The check "written by" in a record shows that the record is simulated.
"""

import re
import threading
import time
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.catalog.instance_type import InstanceType
from trainium_local import clock
from trainium_local.resources import api
from trainium_local.stand_ins.user_data import texts
from trainium_wire.keys import MEMBERSHIP_KEY, USAGE_PREFIX
from trainium_wire.membership import Membership
from trainium_wire.metric_sample import MAX_SAMPLES, MetricSample
from trainium_wire.node_record import REPORT_URL_VARIABLE, CheckRecord, NodeRecord
from trainium_wire.usage import NodeUsage

BOOT_SECONDS = 0.2
_USAGE_SECONDS = 60
USAGE_THREAD = "usage of stand-ins"
WRITER = CheckRecord(
    name="written by",
    expected="the node itself",
    found="the embedded AWS: a stand-in, nothing ran on the instance",
    ok=True,
)

_REPORT_URL = re.compile(rf"""^\s*(?:export\s+)?{REPORT_URL_VARIABLE}=["']?(s3://[^"'\s;]+)""", re.MULTILINE)


class StandInNodes:
    """Writes the records of launched nodes.

    Args:
        failing: Number of nodes, from the first launch on, that report a missing device.
    """

    def __init__(self, *, failing: int) -> None:
        self._failing = failing
        self._launched: list[str] = []
        self._verified: dict[str, tuple[str, str, NodeRecord]] = {}
        self._idle_since: dict[str, datetime] = {}
        self._writing_usage = threading.Lock()

    def handle_launch(self, instance: Any) -> None:
        """Write the record of moto's instance after a short delay.

        Returns at once and never raises: launches must not depend on it.
        """
        url = report_url(b64decode(str(instance.user_data or "")))
        if url is None:
            return
        record = node_record(instance.id, instance.instance_type, failed=len(self._launched) < self._failing)
        self._launched.append(instance.id)
        if record.state == "verified":
            self._verified[instance.id] = (instance.region_name, url, record)
        timer = threading.Timer(BOOT_SECONDS, self._write, args=(instance.region_name, url, record))
        timer.daemon = True
        timer.start()

    def handle_event(self, event: Mapping[str, Any]) -> None:
        """Record for every simulated node of a new membership that it reached the others."""
        detail = event["detail"]
        if event["detail-type"] != "Object Created" or detail["object"]["key"] != MEMBERSHIP_KEY:
            return
        bucket = detail["bucket"]["name"]
        try:
            response = api.call("s3", "GetObject", event["region"], {"Bucket": bucket, "Key": MEMBERSHIP_KEY})
            membership = Membership.from_json(response["Body"].read().decode())
        except (BotoCoreError, ClientError, ValueError) as error:
            print(f"stand-in nodes: no membership in {bucket}: {error}", flush=True)
            return
        for instance_id in membership.instance_ids & self._verified.keys():
            region, url, record = self._verified[instance_id]
            if urlsplit(url).netloc == bucket and record.membership != membership.version:
                record = with_peers(record, membership)
                self._verified[instance_id] = (region, url, record)
                self._write(region, url, record)

    def write_usage(self) -> None:
        """Record for every running verified node that no process uses a device, and samples without values."""
        with self._writing_usage:  # otherwise a record timed before the clock was set forward could be written last
            self._write_all_usage()

    def _write_all_usage(self) -> None:
        for instance_id, (region, url, _) in list(self._verified.items()):
            self._idle_since.setdefault(instance_id, clock.now())
            if is_running(instance_id, region):  # the bucket of other instances may be about to be emptied
                place = urlsplit(url)
                key = "/".join([*place.path.strip("/").split("/")[:-1], USAGE_PREFIX, f"{instance_id}.json"])
                now = clock.now()
                minutes = [now - timedelta(minutes=ago) for ago in reversed(range(MAX_SAMPLES))]
                # Nothing is measured on a stand-in.
                samples = tuple(MetricSample(at=at) for at in minutes)
                usage = NodeUsage(state="idle", at=now, idle=now - self._idle_since[instance_id], samples=samples)
                _put(region, place.netloc, key, usage.to_json())

    def keep_writing_usage(self) -> None:
        """Start writing usage records every minute."""
        threading.Thread(target=self._write_usage_forever, daemon=True, name=USAGE_THREAD).start()

    def _write_usage_forever(self) -> None:
        while True:
            time.sleep(_USAGE_SECONDS)
            self.write_usage()

    def is_verified(self, instance_id: str) -> bool:
        """Return whether this module wrote the record of a verified node."""
        return instance_id in self._verified

    def _write(self, region: str, url: str, record: NodeRecord) -> None:
        place = urlsplit(url)
        key = "/".join(part for part in (place.path.strip("/"), f"{record.instance_id}.json") if part)
        _put(region, place.netloc, key, record.to_json())


def _put(region: str, bucket: str, key: str, text: str) -> None:
    content = {"Body": text.encode(), "ContentType": "application/json"}
    try:
        api.call("s3", "PutObject", region, {"Bucket": bucket, "Key": key, **content})
    except (BotoCoreError, ClientError) as error:
        print(f"stand-in nodes: s3://{bucket}/{key} was not written: {error}", flush=True)


def is_running(instance_id: str, region: str) -> bool:
    """Return whether an instance exists and is running."""
    try:
        response = api.call("ec2", "DescribeInstances", region, {"InstanceIds": [instance_id]})
    except (BotoCoreError, ClientError):
        return False
    states = [instance["State"]["Name"] for some in response["Reservations"] for instance in some["Instances"]]
    return states == ["running"]


def report_url(user_data: bytes) -> str | None:
    """Return the folder of the node's record: TRN_REPORT_URL in plain or multipart user data."""
    for part in texts(user_data):
        if match := _REPORT_URL.search(part):
            return match[1].rstrip("/")
    return None


def node_record(instance_id: str, instance_type: str, *, failed: bool) -> NodeRecord:
    """Return the record of a node of this type, verified or with its last device missing."""
    spec = builtin_catalog().get(instance_type)
    checks, reason = _device_checks(spec, failed=failed) if spec else ((), "")
    if failed and not reason:
        reason = f"the stand-in was set to fail; {instance_type} is not in the catalogue"
    return NodeRecord(
        instance_id=instance_id,
        state="failed" if failed else "verified",
        reason=reason,
        checks=(WRITER, *checks),
        time=_now(),
    )


def with_peers(record: NodeRecord, membership: Membership) -> NodeRecord:
    """Return the record of a node that received a membership and reached all of its other nodes."""
    others = f"{len(membership.members) - 1} of {len(membership.members) - 1}"
    peers = CheckRecord(name="peers", expected=others, found=others, ok=True)
    checks = (*(check for check in record.checks if check.name != peers.name), peers)
    return replace(record, checks=checks, membership=membership.version, time=_now())


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _device_checks(spec: InstanceType, *, failed: bool) -> tuple[tuple[CheckRecord, ...], str]:
    expected = spec.devices
    found = expected - failed
    name, by, what, each = (
        ("gpus", "nvidia-smi", "GPUs", "GPU")
        if spec.is_gpu
        else ("neuron-devices", "neuron-ls", "Neuron devices", "device")
    )
    reason = f"{by} shows {found} of {expected} {what} (missing: {each} {expected - 1})" if failed else ""
    devices = CheckRecord(name=name, expected=str(expected), found=str(found), ok=not failed)
    efa = str(spec.efa_interfaces)
    return (devices, CheckRecord(name="efa-devices", expected=efa, found=efa, ok=True)), reason
