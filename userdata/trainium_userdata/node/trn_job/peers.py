"""Tests whether the next two nodes answer, and reads the records of other nodes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from typing import Any

from trn_node.cluster import SSH_PORT, answers
from trn_node.job_attempts import neighbours

from .file_tree import listed
from .launch import Launch
from .store import Store

_NAMED = 3
"""The maximum number of nodes in a clause."""


class PeerListener:
    """A port that shows other nodes that this process is running: after a reboot, the node no longer listens on it."""

    def __init__(self, address: str) -> None:
        self._socket = socket.create_server((address, 0), backlog=128)
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, name="listener", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                self._socket.accept()[0].close()
            except OSError:
                return


class Neighbours:
    """The next nodes in the order of ranks."""

    def __init__(self, launch: Launch, store: Store) -> None:
        self._launch, self._store = launch, store
        self._ranks = neighbours(launch.rank, len(launch.nodes))
        self._ports: dict[int, int] = {}
        self._misses: dict[int, int] = {}

    @property
    def seconds(self) -> float:
        """Seconds until the next test."""
        timing = self._launch.timing
        return timing.peers_again if any(self._misses.values()) else timing.peers

    def test(self) -> str | None:
        """A sentence on the neighbours that failed the last two tests, because they do not answer or their part of the
        job has ended; None without such neighbours."""
        lost: list[str] = []
        for rank in self._ranks:
            node = self._launch.nodes[rank]
            if rank not in self._ports:
                self._ports.update(self._port(rank))
            port = self._ports.get(rank)
            name = f"node {rank} ({node['instance_id']}, {node['address']})"
            if port and not answers(node["address"], port, refused=False):
                there = answers(node["address"], SSH_PORT)
                sentence = f"{name} {'answers, but its part of the job has ended' if there else 'does not answer'}"
            elif not port and not answers(node["address"], SSH_PORT):
                sentence = f"{name} does not answer"
            else:
                self._misses[rank] = 0
                continue
            self._misses[rank] = self._misses.get(rank, 0) + 1
            if self._misses[rank] > 1:
                lost.append(sentence)
        return " and ".join(lost) or None

    def _port(self, rank: int) -> dict[int, int]:
        """The port of the node's listener by its rank; empty before its first record, or if S3 does not answer."""
        try:
            record = self._store.read(self._launch.keys.node(rank))
        except OSError:
            return {}
        return {rank: int(record["peer_port"])} if record and record.get("peer_port") else {}


def has_succeeded(launch: Launch, store: Store, rank: int) -> bool:
    """Whether a node has reported that its part has succeeded; False if S3 does not answer."""
    return _record(launch, store, rank).get("state") == "succeeded"


def already_succeeded(launch: Launch, store: Store) -> str:
    """A clause that names the nodes, except node 0, whose part has already succeeded; empty without any.

    The nodes that are still running may hang because they wait for these.
    """
    names = [str(rank) for rank in range(1, len(launch.nodes)) if has_succeeded(launch, store, rank)]
    shown = f"{', '.join(names[:_NAMED])}{' and others' if len(names) > _NAMED else ''}"
    return f"; already succeeded: node{'s' * (len(names) > 1)} {shown}" if names else ""


def notes_on_success(launch: Launch, store: Store, own: Mapping[str, Any]) -> str:
    """Clauses on all nodes of an attempt whose command succeeded; empty without any.

    They name processes that were killed because commands left them running, and devices that counted uncorrectable
    errors, after which results may be wrong.

    Args:
        launch: Launch of node 0.
        store: Objects of the job.
        own: The record of node 0.
    """
    records = [own, *(_record(launch, store, rank) for rank in range(1, len(launch.nodes)))]
    names = [name for record in records for name in record.get("left_running", [])]
    errors: list[list[str]] = [record.get("device_errors") or [] for record in records]
    failing = [f"node {rank}: {', '.join(found)}" for rank, found in enumerate(errors) if found]
    killed = f"processes that the command left running in the background were killed: {listed(dict.fromkeys(names))}"
    killed += "; if they belong to the job, let the command wait for them, in Bash with `wait`"
    wrong = f"results may be wrong: {listed(failing, _NAMED)}"
    return "; ".join([*[killed] * bool(names), *[wrong] * bool(failing)])


def any_compiles(launch: Launch, store: Store) -> bool:
    """Whether the last record of a node other than 0 reports a running compiler. All nodes wait for it."""
    return any(_record(launch, store, rank).get("compiles") for rank in range(1, len(launch.nodes)))


def _record(launch: Launch, store: Store, rank: int) -> dict[str, Any]:
    """The record of a node; empty if there is none, or S3 does not answer."""
    try:
        return store.read(launch.keys.node(rank)) or {}
    except OSError:
        return {}
