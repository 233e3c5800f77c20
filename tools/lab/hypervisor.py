"""Runs the instances of the embedded EC2's Auto Scaling groups as nodes, with the user data that EC2 returns."""

import base64
import threading
import traceback
from collections.abc import Callable
from typing import Any

from tools.lab.hardware import hardware_of
from tools.lab.instance import Instance
from tools.lab.laboratory import Laboratory
from tools.lab.node import Node
from tools.lab.plans import lab_plan
from trainium_local import CONSOLE_PATH
from trainium_runtime.tags import tag_values

PAUSE_SECONDS = 0.2
Preparation = Callable[[int, Node], object]
"""Changes a node before it is powered on. The first argument is the number of the node, from 0."""


def change_nothing(_number: int, _node: Node) -> None:
    """The preparation of nodes without a fault."""


class Hypervisor:
    """Starts a node for each new instance, and removes the node of an instance that has left its group.

    Used in a `with` block. An error is printed when it occurs, and raised at the end of the block.
    """

    def __init__(self, lab: Laboratory) -> None:
        self.nodes: dict[str, Node] = {}
        self._lab = lab
        self._prepare: Preparation = change_nothing
        self._started = 0
        self._stored: dict[str, int] = {}
        self._end = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Hypervisor":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        if self._error:
            raise self._error

    def prepare(self, preparation: Preparation) -> None:
        """Prepare later nodes with this function, and count them from 0 again."""
        self._prepare, self._started = preparation, 0

    @property
    def started(self) -> int:
        """Number of nodes that were started since `prepare` was called."""
        return self._started

    def _watch(self) -> None:
        groups, ec2 = self._lab.client("autoscaling"), self._lab.client("ec2")
        try:
            while not self._end.wait(PAUSE_SECONDS):
                members = groups.describe_auto_scaling_instances()["AutoScalingInstances"]
                desired = {member["InstanceId"] for member in members}
                # First, because a new node may have the address of a removed one.
                for instance_id in self.nodes.keys() - desired:
                    self._lab.remove(self.nodes.pop(instance_id))
                for instance_id in sorted(desired - self.nodes.keys()):
                    self._start(instance_of(ec2, instance_id))
                for instance_id, node in self.nodes.items():
                    self._store_console(instance_id, node)
        except BaseException as error:
            traceback.print_exc()
            self._error = error

    def _start(self, instance: Instance) -> None:
        node = self._lab.node(instance, hardware_of(lab_plan(instance_type=instance.instance_type)))
        self._prepare(self._started, node)
        self._started += 1
        self.nodes[instance.instance_id] = node
        node.power_on()

    def _store_console(self, instance_id: str, node: Node) -> None:
        """Store the text of the console, with which the embedded EC2 answers GetConsoleOutput."""
        console_text = node.console_text()
        if len(console_text) == self._stored.get(instance_id):
            return
        self._stored[instance_id] = len(console_text)
        self._lab.connection.send("PUT", f"{CONSOLE_PATH}/{instance_id}", console_text.encode())


def instance_of(ec2: Any, instance_id: str) -> Instance:
    """EC2's description of an instance, with its user data."""
    description = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]
    data = ec2.describe_instance_attribute(InstanceId=instance_id, Attribute="userData")["UserData"].get("Value", "")
    return Instance(
        instance_id=instance_id,
        instance_type=description["InstanceType"],
        address=description["PrivateIpAddress"],
        user_data=base64.b64decode(data),
        zone=description["Placement"]["AvailabilityZone"],
        tags=tag_values(description.get("Tags")),
    )
