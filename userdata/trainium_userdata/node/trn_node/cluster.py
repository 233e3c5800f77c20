"""The other nodes: the membership of the cluster, this node's rank, and whether its peers answer."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from trainium_wire.keys import MEMBERSHIP_KEY

from . import files, ssh_keys
from .check import Check
from .hardware import DRAINING, FAILED
from .internode import NAME
from .internode_rounds import RESULT, TASK, Task
from .notices import InstanceNotice, timestamp
from .s3 import S3, S3Error

VARIABLES = "etc/trn/cluster"
HOSTS = "etc/trn/hostfile"

CONNECT_TIMEOUT_SECONDS = 3
"""A response within one subnet takes less than a millisecond; the rest is for retransmissions."""

PEERS_TIMEOUT_SECONDS = 60
"""How long peers may take to answer. All nodes are running when the membership is written, so this time is for network
problems."""

POLL_SECONDS, IDLE_POLL_SECONDS = 5, 30
"""Seconds between reads of the membership: while the node waits for one or tests it, and otherwise."""

TERMINATE_SECONDS = 30.0
"""How long the end of the test takes at most. After that it has missed SIGTERM: Python ignores an exception of a signal
handler in a destructor."""

SSH_PORT = 22
THREADS = 32
NAMED = 3
"""The maximum number of silent peers in a sentence."""


class Peers(NamedTuple):
    """The result of the test of a membership's nodes.

    If nodes do not reach each other, either may be at fault. The larger part of the nodes stays, or of two equal parts
    the one with rank 0. A node in the other part is cut off, and fails. A node in the part that stays must not be
    replaced, but is not verified either: it is draining until the others answer.

    Attributes:
        membership: Version of the membership.
        checks: The checks for the record.
        state: State of this node: failed or draining; empty without a problem.
        problem: Why this node is failed or draining.
    """

    membership: str
    checks: list[dict[str, Any]]
    state: str = ""
    problem: str = ""


class InternodeResult(NamedTuple):
    """The check for the record, and why it fails this node; `problem` is empty if it does not."""

    check: dict[str, Any]
    problem: str


class InternodeProcess:
    """The process of `trn-node internode`. A process of an earlier membership is ended before another starts."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._task: Task | None = None

    def poll(self, task: Task) -> InternodeResult | None:
        """The result of the test of a membership; None while the test is running. Starts the test if necessary."""
        try:
            result = json.loads(files.read(RESULT))
            if result["version"] == task.version:
                return InternodeResult(result["check"], result["problem"])
        except (ValueError, LookupError, TypeError):
            pass
        if self.process is None or self._task != task:
            self._start(task)
        elif self.process.poll() is not None:
            why = f"not tested: the process ended with exit code {self.process.returncode}"
            warning = f"all-reduce over nodes: {why}"
            expected = f"a correct all-reduce over {len(task.nodes)} nodes"
            return InternodeResult(Check(NAME, expected, why, True, warning=warning).to_json(), "")
        return None

    def _start(self, task: Task) -> None:
        while self.process and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(TERMINATE_SECONDS)
        files.write(TASK, json.dumps(task._asdict()))
        self.process = subprocess.Popen([sys.executable, "-m", "trn_node", "internode"])
        self._task = task


class ClusterMembership:
    """The membership on this node.

    Attributes:
        peers: The result of the last test; None until the first membership with this node has been tested.
        read_at: Time of the last read of the membership, in seconds since 1970.
        expects_membership: Whether a job waits for a newer membership.
    """

    def __init__(self, s3: S3, log: Callable[[str], None], internode: InternodeProcess) -> None:
        self._s3, self._log, self._internode = s3, log, internode
        self._reached = ""
        self._etag = ""
        self._membership: dict[str, Any] = {}
        self._peers_deadline = 0.0
        self._trusted_version = ""
        self.peers: Peers | None = None
        self.read_at = 0.0
        self.expects_membership = False

    @property
    def seconds(self) -> int:
        return POLL_SECONDS if self.expects_membership or not self._is_tested else IDLE_POLL_SECONDS

    @property
    def nodes(self) -> dict[str, str]:
        """Addresses of the nodes by instance ID, in the order of ranks; empty without a membership."""
        return {node["instance_id"]: node["address"] for node in self._membership.get("nodes", [])}

    @property
    def version(self) -> str:
        """Version of the membership; empty without one."""
        return str(self._membership.get("version", ""))

    @property
    def is_sound(self) -> bool:
        """Whether this membership has been tested without a problem."""
        return bool(self._is_tested and self.peers and not self.peers.problem)

    @property
    def _is_tested(self) -> bool:
        return self.peers is not None and self.peers.membership == self.version

    def poll(self, instance_id: str, now: float) -> list[InstanceNotice]:
        """Read the membership, test its nodes, write VARIABLES and HOSTS, and return the membership's notices.

        Args:
            instance_id: This instance.
            now: The time in seconds since 1970.

        Raises:
            OSError: S3 does not answer or refuses, or a file cannot be read or written.
            ValueError, LookupError, TypeError: The membership or the plan is invalid.
        """
        self._read(f"{folder()}/{MEMBERSHIP_KEY}", now)
        self.read_at = now
        others = self.nodes
        if instance_id in others:
            plan, nodes = files.plan(), dict(others)
            del others[instance_id]
            if not self._is_tested or (self.peers and self.peers.problem):
                self._test(others, plan, instance_id, now)
            # Only after the test, because a job that is started with these files would use the cores of the test.
            if self._is_tested:
                _write(list(nodes), list(nodes.values()), instance_id)
        notices = self._membership.get("notices", [])
        return [InstanceNotice(each["kind"], each["reason"], timestamp(each["at"])) for each in notices]

    def exchange_keys(self, instance_id: str) -> None:
        """If the plan has logins between nodes, publish this instance's keys and trust those of the others, once per
        membership.

        Raises:
            OSError: S3 does not answer or refuses, or a file cannot be read or written.
            ValueError: The plan or a key is invalid.
            LookupError: The plan is invalid, or another node has not stored its keys yet.
            subprocess.CalledProcessError: The user's key cannot be made, or a file of the user cannot be written.
        """
        version = self._membership.get("version")
        if version and version != self._trusted_version and files.plan()["internode_ssh"]:
            ssh_keys.exchange(self._s3, folder(), instance_id, self.nodes)
            self._trusted_version = version

    def _read(self, url: str, now: float) -> None:
        try:
            stored = self._s3.get(url, self._etag)
        except S3Error as error:
            # Without permission to list the bucket, S3 returns 403 for objects that do not exist.
            if error.status != 403 or self._membership:
                raise
            return
        if stored:
            membership = json.loads(stored[0])
            for node in membership["nodes"]:
                # The address is written into a shell file.
                ipaddress.ip_address(node["address"])
            if membership["version"] != self._membership.get("version"):
                self._peers_deadline = now + PEERS_TIMEOUT_SECONDS
            self._membership, self._etag = membership, stored[1]

    def _test(self, others: dict[str, str], plan: dict[str, Any], instance_id: str, now: float) -> None:
        ports = SSH_PORT, plan["rendezvous_port"]
        silent = set[str]() if self._reached == self.version else unreachable([*others.values()], ports)
        if silent and now < self._peers_deadline:
            return
        internode_result: InternodeResult | None = None
        if not silent:
            self._reached = self.version
            if others and plan.get("internode") and NAME not in plan["suppress_checks"]:
                internode_result = self._internode.poll(Task(self.version, instance_id, self.nodes, folder()))
                if not internode_result:
                    return
        expected, found = f"{len(others)} of {len(others)}", f"{len(others) - len(silent)} of {len(others)}"
        names = [f"{name} ({address}) does not answer" for name, address in others.items() if address in silent]
        found = "; ".join([found, *names[:NAMED], *["and others"] * (len(names) > NAMED)])
        state = problem = ""
        suppressed = "peers" in plan["suppress_checks"]
        counts = not suppressed and plan.get("verification") != "observe"
        if silent and counts:
            state = FAILED if self._is_cut_off(silent) else DRAINING
            problem = f"peers: {found}: does the security group let all nodes reach each other?"
        shown = found + " (suppressed)" * bool(silent and suppressed)
        check: dict[str, Any] = {"name": "peers", "expected": expected, "found": shown, "ok": not problem}
        if silent and not suppressed and not counts:
            check["warning"] = f"peers: {found}"
        checks = [check] if others else []
        if internode_result:
            checks.append(internode_result.check)
            if internode_result.problem:
                state, problem = FAILED, internode_result.problem
        peers = Peers(self._membership["version"], checks, state, problem)
        if peers != self.peers:
            self._log(f"peers: {shown}")
        self.peers = peers

    def _is_cut_off(self, silent: set[str]) -> bool:
        """Whether a node that does not reach these addresses is in the part of the nodes that is cut off."""
        addresses = list(self.nodes.values())
        reached = len(addresses) - len(silent)
        return len(silent) > reached or (len(silent) == reached and addresses[0] in silent)


def folder() -> str:
    """S3 URL of the cluster's folder, which contains the folder of node records. Raises LookupError without one."""
    return files.locations()["TRN_REPORT_URL"].rpartition("/")[0]


def _write(names: list[str], addresses: list[str], instance_id: str) -> None:
    """Write shell variables, which login shells read, and the MPI host file with rank 0 first.

    NEURON_RT_ROOT_COMM_ID is not set, because a job on some of the nodes may have another root. torch_xla derives it
    from MASTER_ADDR.
    """
    head = addresses[0]
    text = f"HEAD_NODE={head}\nTRN_NODE_RANK={names.index(instance_id)}\nTRN_NODES={len(names)}\n"
    for name, content in ((HOSTS, "\n".join(addresses) + "\n"), (VARIABLES, text)):
        if files.read(name) != content:
            files.write(name, content)


def unreachable(addresses: Iterable[str], ports: Iterable[int] = (SSH_PORT,)) -> set[str]:
    """The addresses that fail to answer on one or more of the ports."""
    with ThreadPoolExecutor(THREADS) as pool:
        return {*pool.map(_unreachable_address, [(address, port) for port in ports for address in addresses])} - {""}


def _unreachable_address(target: tuple[str, int]) -> str:
    """The address if it does not answer; otherwise empty."""
    return "" if answers(*target) else target[0]


def answers(address: str, port: int, *, refused: bool = True) -> bool:
    """Whether an address answers on a port. refused: Whether a refused connection counts as an answer."""
    try:
        socket.create_connection((address, port), CONNECT_TIMEOUT_SECONDS).close()
    except OSError as error:
        return refused and isinstance(error, ConnectionRefusedError)
    return True
