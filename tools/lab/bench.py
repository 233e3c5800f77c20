"""python -m tools.lab tools.lab.bench: time from power-on to verified, compared with empty user data."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.lab.laboratory import Laboratory, laboratory
from tools.lab.node import Node
from tools.lab.paths import SHOWN
from tools.lab.plans import lab_plan
from tools.lab.site import Site
from tools.lab.waiting import wait_for
from trainium_core.plan import Plan
from trainium_wire.keys import CURRENT_JOB_KEY, MEMBERSHIP_KEY, RECORDS_PREFIX

TYPES = ("trn1.2xlarge", "trn1.32xlarge")
"""With 2 and with 32 NeuronCores. The self-test starts one framework process for each core."""

NODES_AT_ONCE = (1, 2, 4, 8)
POLLED = (MEMBERSHIP_KEY, CURRENT_JOB_KEY)
"""Requests that a verified node repeats."""

EMPTY = b"#!/bin/sh\n"
AIM = 1.5


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Seconds from the first node's power-on until all nodes were verified, or with empty user data booted.

    Attributes:
        downloads: The largest number of GET requests of one node over the network, without those of POLLED.
    """

    plan: Plan
    nodes: int
    empty: float
    verified: float
    downloads: int

    @property
    def ratio(self) -> float:
        return self.verified / self.empty


def measure(site: Site, count: int) -> Measured:
    empty = [site.node(user_data=EMPTY) for _ in range(count)]
    started = power_on(empty)
    wait_for("cloud-init", lambda: all(booted(node).exists() for node in empty))
    empty_seconds = max(booted(node).stat().st_mtime for node in empty) - started
    remove(site.lab, empty)
    nodes = [site.node() for _ in range(count)]
    started = power_on(nodes)
    wait_for("every record", lambda: all(record_time(site.lab, node) for node in nodes), seconds=300)
    verified_seconds = max(record_time(site.lab, node) for node in nodes) - started
    outcomes = [site.outcome(node) for node in nodes]
    assert all(outcome.verdict.state == "ready" for outcome in outcomes), outcomes
    downloads = max(downloads_of(site.lab, node) for node in nodes)
    remove(site.lab, nodes)
    return Measured(plan=site.plan, nodes=count, empty=empty_seconds, verified=verified_seconds, downloads=downloads)


def power_on(nodes: Sequence[Node]) -> float:
    """Power on all nodes.

    Returns:
        When the first node was powered on, in seconds since 1970.
    """
    for node in nodes:
        node.power_on()
    return min(node.powered_on_at for node in nodes)


def booted(node: Node) -> Path:
    """The file that cloud-init writes when it has finished."""
    return node.root / f"var/lib/cloud/instances/{node.instance.instance_id}/boot-finished"


def record_time(lab: Laboratory, node: Node) -> float:
    """When the record was stored; 0 before that."""
    path = f"/{RECORDS_PREFIX}/{node.instance.instance_id}.json"
    requests = [
        request for request in lab.proxy.of(node.instance.address) if request.method == "PUT" and request.path == path
    ]
    return requests[0].time if requests else 0


def downloads_of(lab: Laboratory, node: Node) -> int:
    """The number of a node's GET requests over the network, without those of POLLED."""
    requests = lab.proxy.of(node.instance.address)
    return sum(request.method == "GET" and not request.path.endswith(POLLED) for request in requests)


def remove(lab: Laboratory, nodes: Sequence[Node]) -> None:
    for node in nodes:
        lab.remove(node)


def show(measurements: Sequence[Measured]) -> None:
    table = Table("type", "cores", "nodes", "empty", "verified", "ratio", "downloads", box=None)
    for measured in measurements:
        table.add_row(
            measured.plan.instance_type,
            str(measured.plan.processes_per_node),
            str(measured.nodes),
            f"{measured.empty:.1f} s",
            f"{measured.verified:.1f} s",
            f"{measured.ratio:.2f}",
            str(measured.downloads),
        )
    Console().print(table)


def main() -> None:
    with laboratory() as lab:
        sites = [Site(lab, lab_plan(instance_type=name)) for name in TYPES]
        # This measurement does not count: it fills caches of this machine.
        measure(sites[0], 1)
        measurements = [measure(site, count) for site in sites for count in NODES_AT_ONCE]
        show(measurements)
        worst = max(measured.ratio for measured in measurements)
        downloads = max(measured.downloads for measured in measurements)
        SHOWN.write_text(f"verified after {worst:.2f} times an empty boot at most (aim {AIM}), downloads: {downloads}")


if __name__ == "__main__":
    main()
