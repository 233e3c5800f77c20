"""Rules for EC2 instances: capacity, placement, number, Neuron software and setup script.

Plans and constructs share these rules. `field` is the name of the value in the problem.
"""

import subprocess
from collections.abc import Iterator
from functools import cache
from shutil import which

from trainium_core.catalog.catalog import Catalog
from trainium_core.catalog.instance_type import InstanceType
from trainium_core.facts import facts
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.plan.values import CapacityKind
from trainium_core.problems import Problem

_BASH_SECONDS = 10


def usage_class_is_supported(
    kind: InstanceType, capacity: CapacityKind, catalog: Catalog, *, field: str
) -> Iterator[Problem]:
    """The type must support the kind of capacity."""
    usage_class = "on-demand" if capacity == "reservation" else capacity
    if usage_class not in kind.usage_classes:
        allowed = [*kind.usage_classes, *(["reservation"] if "on-demand" in kind.usage_classes else [])]
        others = ", ".join(name for name, other in catalog.items() if usage_class in other.usage_classes) or "none"
        yield Problem(
            key=field,
            got=capacity,
            allowed=f"{', '.join(allowed)} on {kind.name}",
            fix=f"choose {' or '.join(allowed)}, or a type that supports {capacity}: {others}",
        )


def reservation_given(capacity: CapacityKind, reservation_id: str | None, *, field: str) -> Iterator[Problem]:
    """Reserved capacity requires a reservation ID; other capacity must not have one."""
    reserved = capacity in ("capacity-block", "reservation")
    if reserved and reservation_id is None:
        fix = f"with {capacity}, specify its ID, which `trn capacity` shows; or choose on-demand or spot"
        yield Problem(key=field, got=None, allowed=SETTINGS["reservation_id"].form.allowed, fix=fix)
    if not reserved and reservation_id is not None:
        fix = "choose capacity-block or reservation, or remove the ID"
        yield Problem(key=field, got=reservation_id, allowed=f"no value with capacity {capacity}", fix=fix)


def block_nodes(nodes: int, capacity: CapacityKind, *, field: str) -> Iterator[Problem]:
    """A Capacity Block must be able to contain the nodes."""
    largest = facts()["capacity_blocks"]["instances_per_block"]
    if capacity == "capacity-block" and nodes > largest:
        allowed = f"up to {largest}, the size of the largest Capacity Block"
        yield Problem(key=field, got=nodes, allowed=allowed, fix=f"use {largest} nodes or fewer")


def block_placement(group: str | None, capacity: CapacityKind, *, field: str) -> Iterator[Problem]:
    """Nodes in a Capacity Block must not have a placement group."""
    if capacity == "capacity-block" and group is not None:
        fix = "remove it: a Capacity Block already places its instances close together"
        yield Problem(key=field, got=group, allowed="no value with capacity capacity-block", fix=fix)


def nodes_with_efa(nodes: int, kind: InstanceType, catalog: Catalog, *, field: str) -> Iterator[Problem]:
    """Several nodes require a type with EFA."""
    if nodes > 1 and not kind.efa_interfaces:
        with_efa = [name for name, entry in catalog.items() if entry.efa_interfaces]
        yield Problem(
            key=field,
            got=nodes,
            allowed=f"1 with {kind.name}, which has no EFA and cannot train across nodes",
            fix=f"choose 1, or a type with EFA: {', '.join(with_efa)}",
        )


def software_for_devices(software: str, kind: InstanceType, *, field: str) -> Iterator[Problem]:
    """Neuron software must not be installed on a type with GPUs."""
    if software == "install" and kind.is_gpu:
        yield Problem(key=field, got=software, allowed=f"image on {kind.name}, which has GPUs", fix="remove it")


def script_for_bash(script: str | None, *, field: str) -> Iterator[Problem]:
    """bash must be able to parse the script."""
    if script is None:
        return
    if "\r" in script:
        error, fix = "it has carriage returns", "end its lines with line feeds only (LF)"
    else:
        error, fix = bash_syntax_error(script), "check it with: bash -n"
    if error is not None:
        yield Problem(key=field, got=script, allowed=f"a valid bash script; error: {error}", fix=fix)


@cache
def bash_syntax_error(script: str) -> str | None:
    """The first error of `bash -n`; None without an error, or if bash is missing, fails to run or takes over 10 s."""
    bash = which("bash")
    if bash is None:
        return None
    try:
        checked = subprocess.run(
            [bash, "-n"], input=script.encode(), capture_output=True, env={}, check=False, timeout=_BASH_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = checked.stderr.decode(errors="replace").strip().splitlines()
    if checked.returncode == 0:
        return None
    return lines[0].removeprefix(f"{bash}: ") if lines else f"exit code {checked.returncode}"
