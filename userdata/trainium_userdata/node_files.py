"""The files of a node, with path, mode and text."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from trainium_core.engines.pcs.slurm_settings import EPILOG
from trainium_core.facts import facts
from trainium_core.plan.node_settings import NodeSettings
from trainium_userdata.expectations import node_expectations
from trainium_userdata.node.trn_node.check import HOST
from trainium_userdata.node.trn_node.job_user import JOB_UID, JOB_USER

_REPORTING_MODULES = {
    "trainium_wire": ("__init__", "formats", "keys"),
    "trn_node": ("__init__", "__main__", "files", "imds", "record", "s3", "signing", "web"),
}
"""The modules of `trn-node report`, which must work before the node script has been downloaded."""


@dataclass(frozen=True, kw_only=True)
class NodeFile:
    """One file. `text` does not end with a line feed; the node adds it."""

    path: str
    mode: str
    text: str


def mark(files: Sequence[NodeFile]) -> str:
    """A word that no file contains, to separate the files in one here-document."""
    word = "@@FILE"
    while any(word in file.text for file in files):
        word += "_"
    return word


def all_files(node: NodeSettings, *, boot_script: str, constant_text: Callable[[str], str]) -> tuple[NodeFile, ...]:
    """All files of a node. The units of services are last.

    Args:
        node: The settings of the node.
        boot_script: The text of the boot script.
        constant_text: Returns the text of a file that is the same on every node, by the name of its template.
    """
    return (
        *_common_files(node, _PACKAGES, node_expectations(node), constant_text),
        _file("/opt/trn/boot.sh", boot_script, mode="755"),
        *_units(("trn-node-metrics.service",) if node.metrics_port else (), constant_text),
        *_units(("trn-node-watch.service", "trn-node.service"), constant_text),
    )


def slurm_files(node: NodeSettings, *, boot_script: str, constant_text: Callable[[str], str]) -> tuple[NodeFile, ...]:
    """Like `all_files`, for a Slurm node or the login node."""
    expected = node_expectations(node)
    longest = min(expected["self_test"]["all_seconds"], facts()["pcs"]["self_test_seconds"])
    expected = {**expected, "slurm": True, "self_test": {**expected["self_test"], "all_seconds": longest}}
    return (
        *_common_files(node, (*_PACKAGES, "trn_slurm"), expected, constant_text),
        _file("/usr/local/bin/trn-slurm", constant_text("trn-slurm.sh"), mode="755"),
        _file("/etc/profile.d/trn-slurm.sh", constant_text("slurm_profile.sh")),
        _file(EPILOG, constant_text("epilog.sh"), mode="755"),
        _file("/opt/trn/boot.sh", boot_script, mode="755"),
        *_units(("trn-node-watch.service",), constant_text),
    )


def eks_files(node: NodeSettings, *, boot_script: str, constant_text: Callable[[str], str]) -> tuple[NodeFile, ...]:
    """Like `all_files`, for a node of an EKS cluster. The host has no framework and mounts no file systems."""
    expected = {**node_expectations(node), "scope": HOST, "framework": None, "scratch": None}
    return (
        _file("/etc/trn/plan.json", json.dumps(expected, indent=1)),
        *(_module(package, name) for package in ("trainium_wire", "trn_node", "trn_eks") for name in _modules(package)),
        _command(constant_text),
        _file("/opt/trn/boot.sh", boot_script, mode="755"),
    )


def _common_files(
    node: NodeSettings, packages: Iterable[str], expected: Mapping[str, Any], constant_text: Callable[[str], str]
) -> Iterator[NodeFile]:
    setup: list[NodeFile] = []
    if node.setup_script:
        setup.append(_file("/opt/trn/apt.conf", constant_text("apt.conf")))
        setup.append(_file("/var/lib/trn/setup.sh", node.setup_script, mode="700"))
    yield from (
        _file("/etc/trn/plan.json", json.dumps(expected, indent=1)),
        *(_module(package, name) for package in packages for name in _modules(package)),
        _command(constant_text),
        _file("/etc/profile.d/trn.sh", constant_text("profile.sh")),
        _file("/etc/needrestart/conf.d/trn-node.conf", constant_text("needrestart.conf")),
        _file(
            f"/etc/sysusers.d/{JOB_USER}.conf", f'u {JOB_USER} {JOB_UID} "Jobs of trn" /nonexistent /usr/sbin/nologin'
        ),
        # Its name sorts after that of Ubuntu's file, whose list this file extends.
        _file("/etc/apt/apt.conf.d/60trn-node", constant_text("unattended.conf")),
        *setup,
    )


def _units(names: Iterable[str], constant_text: Callable[[str], str]) -> Iterator[NodeFile]:
    return (_file(f"/etc/systemd/system/{name}", constant_text(name)) for name in names)


def reporting_files(*, constant_text: Callable[[str], str]) -> tuple[NodeFile, ...]:
    """The files that a node needs to report, and to download the others."""
    modules = [(package, name) for package, names in _REPORTING_MODULES.items() for name in names]
    return (*(_module(package, f"{name}.py") for package, name in modules), _command(constant_text))


def _modules(package: str) -> list[str]:
    return sorted(file.name for file in _FOLDERS[package].iterdir() if file.name.endswith(".py"))


def _module(package: str, name: str) -> NodeFile:
    return _file(f"/opt/trn/{package}/{name}", (_FOLDERS[package] / name).read_text())


def _command(constant_text: Callable[[str], str]) -> NodeFile:
    return _file("/usr/local/bin/trn-node", constant_text("trn-node.sh"), mode="755")


def _file(path: str, text: str, *, mode: str = "644") -> NodeFile:
    return NodeFile(path=path, mode=mode, text=text.rstrip("\n"))


_SOURCES = files("trainium_userdata") / "node"
_PACKAGES = ("trainium_wire", "trn_node", "trn_job", "trn_cache")
_FOLDERS = {
    "trainium_wire": files("trainium_wire"),
    **{package: _SOURCES / package for package in ("trn_node", "trn_job", "trn_cache", "trn_slurm", "trn_eks")},
}
