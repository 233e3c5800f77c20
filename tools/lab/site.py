"""Nodes of a plan without a stack, a bucket for their records, and the verdict of a deployment on them."""

import contextlib
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from tools.lab.hardware import Hardware, hardware_of
from tools.lab.instance import Instance
from tools.lab.laboratory import REGION, Laboratory
from tools.lab.node import Node
from tools.lab.plans import lab_plan
from tools.lab.waiting import TimedOutError, wait_for
from trainium_core.plan import Plan
from trainium_core.plan.node_settings import node_settings
from trainium_runtime.fleet_verdict import FleetVerdict, FleetView, fleet_verdict
from trainium_runtime.recovery import Recovery
from trainium_userdata.locations import NodeLocations
from trainium_userdata.script import node_script, node_user_data
from trainium_wire.keys import RECORDS_PREFIX
from trainium_wire.node_record import NodeRecord

BUCKET = "trnlab-records"
LUSTRE = {"lustre_dns": f"fs-0123456789abcdef0.fsx.{REGION}.amazonaws.com", "lustre_mount_name": "abcdefgh"}
SHORT_TIMEOUTS = {
    "TRN_VERIFY_ATTEMPTS": "2",
    "TRN_VERIFY_PAUSE": "1",
    "TRN_RETRY_PAUSE": "1",
    "TRN_HTTP_PAUSE": "0.2",
    "TRN_MOUNT_SECONDS": "3",
}
"""For faulty nodes: shorter waits for conditions that may still recover."""

_FAILED = re.compile(r"trn-node FAILED: (.*)\n")
_numbers = count(1)


def lose_a_device(node: Node) -> None:
    """Remove device 7 of a trn1.32xlarge from its next start on."""
    node.fit(replace(hardware_of(lab_plan()), missing_devices=(7,)))
    node.set_environment(SHORT_TIMEOUTS)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The report of a node: its record, otherwise the line on its console, otherwise nothing."""

    instance_id: str
    record: NodeRecord | None
    console: str | None

    @property
    def verdict(self) -> FleetVerdict:
        """The verdict on a cluster of this one node, where nothing is replaced."""
        return fleet_verdict(
            FleetView(
                nodes=1,
                instances=[self.instance_id],
                records={self.instance_id: self.record} if self.record else {},
                recovery=Recovery(limit=0),
                console={self.instance_id: self.console} if self.console else {},
            )
        )


class Site:
    """Makes nodes of one plan. They share a bucket with nodes of other sites of the same lab."""

    def __init__(self, lab: Laboratory, plan: Plan) -> None:
        self.lab = lab
        self.plan = plan
        self.hardware = hardware_of(plan)
        self._s3 = lab.client("s3")
        self._make_bucket()
        self._user_data = node_user_data(node_settings(plan), self.locations).encode()

    @cached_property
    def locations(self) -> NodeLocations:
        """The locations as a stack provides them. The first use uploads the node script."""
        script = node_script(node_settings(self.plan)).encode()
        key = f"scripts/{hashlib.sha256(script).hexdigest()}"
        self._s3.put_object(Bucket=BUCKET, Key=key, Body=script)
        return NodeLocations(
            region=REGION,
            cache_url="s3://trnlab-cache/neuron-compile-cache",
            report_url=f"s3://{BUCKET}/{RECORDS_PREFIX}",
            node_script_url=f"s3://{BUCKET}/{key}",
            **(LUSTRE if self.plan.file_systems.fsx_lustre else {}),
        )

    def node(
        self,
        hardware: Hardware | None = None,
        *,
        layers: Sequence[Path] | None = None,
        user_data: bytes | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Node:
        """Make a node, powered off and healthy by default.

        Args:
            layers: As for Laboratory.node.
        """
        number = next(_numbers)
        instance = Instance(
            instance_id=f"i-{number:017x}",
            instance_type=self.plan.instance_type,
            address=f"10.1.0.{number}",
            user_data=self._user_data if user_data is None else user_data,
        )
        node = self.lab.node(instance, hardware or self.hardware, layers=layers)
        node.set_environment(environment or {})
        return node

    def outcome(self, node: Node, *, seconds: float = 600) -> Outcome:
        """Wait for the node's first report. The outcome has no record and no console if none arrives in time."""
        with contextlib.suppress(TimedOutError):
            wait_for(f"a report of {node.name}", lambda: self.record(node) or self.console_error(node), seconds=seconds)
        record = self.record(node)
        console = None if record else self.console_error(node)
        return Outcome(instance_id=node.instance.instance_id, record=record, console=console)

    def record(self, node: Node) -> NodeRecord | None:
        """The current record in the bucket."""
        key = f"{RECORDS_PREFIX}/{node.instance.instance_id}.json"
        try:
            return NodeRecord.from_json(self._s3.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode())
        except self._s3.exceptions.NoSuchKey:
            return None

    def console_error(self, node: Node) -> str | None:
        """The reason of the node's failure on its console, or None."""
        match = _FAILED.search(node.console_text())
        return match[1].strip() if match else None

    def _make_bucket(self) -> None:
        location: Any = {"LocationConstraint": REGION}
        try:
            self._s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=location)
        except ClientError as error:
            if error.response["Error"]["Code"] != "BucketAlreadyOwnedByYou":
                raise
