"""A Slurm cluster as AWS PCS runs one: a controller, and nodes that start with jobs."""

import base64
import hashlib
import json
import re
import secrets
import shlex
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tools.lab.hypervisor import PAUSE_SECONDS, Preparation, change_nothing
from tools.lab.instance import Instance
from tools.lab.laboratory import REGION, Laboratory
from tools.lab.network import cable
from tools.lab.node import Node
from tools.lab.paths import RUN
from tools.lab.pytorch import share_torch
from tools.lab.shell import run
from tools.lab.site import Site
from tools.lab.slurm.configuration import CONTROLLER_PORT, POWER_FOLDER, configuration_files
from tools.lab.slurm.layers import HOMES, USERS, slurm_layers
from tools.lab.stored_jobs import DEADLINE_SECONDS, LOOK_SECONDS
from tools.lab.waiting import wait_for
from trainium_core.engines.pcs.slurm_settings import NODE_GROUP
from trainium_core.plan import Plan
from trainium_core.plan.node_settings import node_settings
from trainium_userdata.script import slurm_script, slurm_user_data

CONTROLLER_ADDRESS = "10.2.0.1"
SCRIPTS_BUCKET = "trnlab-lifecycle"
IDLE_SECONDS = 600
ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")
"""States in which jobs of the lab end."""
Value = TypeVar("Value")

_FIELD = re.compile(r"(\S+?)=(.*?)(?= \S+?=|$)")


@dataclass(frozen=True, kw_only=True)
class Terminated:
    """A node that PCS terminated because a lifecycle script failed."""

    node: Node
    name: str
    reason: str


class SlurmCluster:
    """The controller, and in place of AWS PCS a thread that starts and ends nodes on the controller's request.

    Used in a `with` block; an error of the thread is raised at the end of the block.
    """

    def __init__(self, lab: Laboratory, plan: Plan) -> None:
        self.plan = plan
        self.nodes: dict[str, Node] = {}
        """The nodes that run, by their Slurm name."""
        self.terminated: list[Terminated] = []
        self.started: list[str] = []
        """The Slurm names of all nodes started so far."""
        self.home = RUN / "slurm/shared"
        self.site = Site(lab, plan)
        self.lab = lab
        self._layers = slurm_layers(lab)
        self._key = base64.b64encode(secrets.token_bytes(256)).decode()
        self._script = self._upload(slurm_script(node_settings(plan), "slurm"))
        self._prepare: Preparation = change_nothing
        self._handled = 0
        self._end = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._make_homes()
        self.controller = self._make_controller()

    def __enter__(self) -> "SlurmCluster":
        self.controller.power_on()
        self.wait_for("the controller", lambda: self.controller.succeeds("scontrol", "ping"))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        for node in (*self.nodes.values(), self.controller):
            self.lab.remove(node)
        if self._error:
            raise self._error

    def prepare(self, preparation: Preparation) -> None:
        """Prepare all nodes that start later. A node's number is the number of nodes that started before the node."""
        self._prepare = preparation

    def run(self, command: str, *, user: str = "ada") -> str:
        """Run a shell command as a user on the controller, and return its output.

        Raises:
            CommandError: The command failed.
        """
        return self.controller.execute(
            *("env", "--ignore-environment", "/usr/sbin/runuser", "--login", user, "--command", command)
        )

    def sbatch(self, script: str, *options: str, user: str = "ada") -> int:
        """Submit a batch script, and return the ID of the job."""
        file = self.home / user / f"{secrets.token_hex(4)}.sbatch"
        file.write_text(script)
        file.chmod(0o755)
        words = ["sbatch", "--parsable", *options, f"{HOMES}/{user}/{file.name}"]
        return int(self.run(shlex.join(words), user=user))

    def job(self, job: int) -> Mapping[str, str]:
        """The fields of `scontrol show job`."""
        return dict(_FIELD.findall(self.controller.execute("scontrol", "--oneliner", "show", "job", str(job)).strip()))

    def node_fields(self, name: str) -> Mapping[str, str]:
        """The fields of `scontrol show node`."""
        shown = self.controller.execute("scontrol", "--oneliner", "show", "node", name).strip()
        return dict(_FIELD.findall(shown))

    def await_state(self, job: int, *states: str) -> Mapping[str, str]:
        """Wait until a job is in one of the states, and return its fields."""

        def reached() -> Mapping[str, str] | None:
            fields = self.job(job)
            return fields if fields["JobState"] in states else None

        return self.wait_for(f"job {job} in {' or '.join(states)}", reached)

    def wait_for(
        self, description: str, condition: Callable[[], Value | None], *, seconds: float = DEADLINE_SECONDS
    ) -> Value:
        return wait_for(description, condition, seconds=seconds, pause=LOOK_SECONDS)

    def output(self, name: str, *, user: str = "ada") -> str:
        """A file in the home directory of a user; empty if it does not exist."""
        file = self.home / user / name
        return file.read_text(errors="replace") if file.exists() else ""

    def release(self, name: str) -> None:
        """Power down a lost or drained node, and wait until Slurm can start the node again."""
        self.controller.execute("scontrol", "update", f"NodeName={name}", "State=POWER_DOWN_FORCE", "Reason=replaced")
        self.wait_for(f"the end of {name}", lambda: name not in self.nodes)
        self.wait_for(
            f"{name} to be idle", lambda: self.node_fields(name)["State"].startswith("IDLE+CLOUD+POWERED_DOWN")
        )

    def cut_power(self, name: str) -> None:
        """End a node as a power loss does. It no longer answers, not even with a refused connection."""
        node = self.nodes[name]
        run("ip", "link", "set", cable(node.instance.address), "down")
        node.cut_power()

    def _make_homes(self) -> None:
        for user, number in USERS.items():
            folder = self.home / user
            folder.mkdir(parents=True)
            shutil.chown(folder, number, number)

    def _upload(self, script: str) -> Mapping[str, Any]:
        """Upload the script, and return it as the node group refers to it: by version ID and checksum."""
        s3 = self.lab.client("s3")
        location: Any = {"LocationConstraint": REGION}
        s3.create_bucket(Bucket=SCRIPTS_BUCKET, CreateBucketConfiguration=location)
        s3.put_bucket_versioning(Bucket=SCRIPTS_BUCKET, VersioningConfiguration={"Status": "Enabled"})
        version = s3.put_object(Bucket=SCRIPTS_BUCKET, Key="verification.sh", Body=script.encode())["VersionId"]
        return {
            "name": "verification.sh",
            "url": f"https://{SCRIPTS_BUCKET}.s3.{REGION}.amazonaws.com/verification.sh?versionId={version}",
            "sha256": hashlib.sha256(script.encode()).hexdigest(),
            "arguments": [],
        }

    def _make_controller(self) -> Node:
        instance = Instance(
            instance_id="i-0000000000000c001",
            instance_type=self.plan.instance_type,
            address=CONTROLLER_ADDRESS,
            user_data=b"#!/bin/sh\n",
        )
        node = self.lab.node(instance, self.site.hardware, layers=self._layers)
        self._share_homes(node)
        # Users submit jobs here with submitit.
        share_torch(node)
        for name, text in configuration_files(self.plan, instance, idle_seconds=IDLE_SECONDS).items():
            node.write(f"etc/slurm/{name}", text)
        (node.root / "etc/slurm/slurm.key").write_bytes(base64.b64decode(self._key))
        (node.root / "etc/slurm/slurm.key").chmod(0o600)
        for path in ("etc/slurm/slurm.key", POWER_FOLDER.lstrip("/"), "var/lib/slurm", "var/lib/slurm/slurmctld"):
            if not (node.root / path).exists():
                (node.root / path).mkdir(parents=True)
            _chown_to_slurm(node, path)
        return node

    def _share_homes(self, node: Node) -> None:
        node.file_systems[HOMES] = self.home
        node.unified_control_groups = True

    def _watch(self) -> None:
        try:
            while not self._end.wait(PAUSE_SECONDS):
                for action, name in self._requests():
                    if action == "suspend" and name in self.nodes:
                        self.lab.remove(self.nodes.pop(name))
                    if action == "resume":
                        self._start(name)
                for name, node in list(self.nodes.items()):
                    self._remove_if_terminated(name, node)
        except BaseException as error:
            self._error = error

    def _requests(self) -> Sequence[tuple[str, str]]:
        """New lines of the resume and suspend programs: the action, and the Slurm name of a node."""
        file = self.controller.root / POWER_FOLDER.lstrip("/") / "power"
        lines = file.read_text().splitlines() if file.exists() else []
        new = lines[self._handled :]
        self._handled = len(lines)
        return [(action, name) for action, name in (line.split() for line in new)]

    def _start(self, name: str) -> None:
        if name in self.nodes:
            self.lab.remove(self.nodes.pop(name))
        node = self.site.node(layers=self._layers, user_data=slurm_user_data(self.site.locations).encode())
        self._share_homes(node)
        registration = {
            "node": name,
            "controller": f"{CONTROLLER_ADDRESS}:{CONTROLLER_PORT}",
            "key": self._key,
            "scripts": [self._script],
            "environment": {
                "PCS_CLUSTER_ID": "pcs_0123456789",
                "PCS_CLUSTER_NAME": self.plan.cluster_name,
                "PCS_COMPUTE_NODE_GROUP_ID": "pcs_abcdefghij",
                "PCS_COMPUTE_NODE_GROUP_NAME": NODE_GROUP,
                "PCS_NODE_ID": name,
            },
        }
        node.write("etc/trnlab/pcs.json", json.dumps(registration))
        self._prepare(len(self.started), node)
        self.started.append(name)
        self.nodes[name] = node
        node.power_on()

    def _remove_if_terminated(self, name: str, node: Node) -> None:
        """Remove a node whose agent asks for its termination because a lifecycle script failed."""
        state = node.root / "var/lib/trnlab/agent.json"
        if not state.exists():
            return
        try:
            agent_state = json.loads(state.read_text())
        except ValueError:
            return
        if agent_state["state"] == "terminate":
            self.lab.remove(self.nodes.pop(name))
            self.terminated.append(Terminated(node=node, name=name, reason=agent_state["reason"]))


def _chown_to_slurm(node: Node, path: str) -> None:
    number = next(int(line.split(":")[2]) for line in node.read("etc/passwd").splitlines() if line.startswith("slurm:"))
    shutil.chown(node.root / path, number, number)
