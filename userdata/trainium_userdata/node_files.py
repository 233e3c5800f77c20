"""The files of a node, with path, mode and text."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from trainium_core.plan.node_settings import NodeSettings
from trainium_userdata.expectations import node_expectations
from trainium_userdata.node.trn_node.limits import JOB_UID, JOB_USER

_REPORTING_MODULES = {
    "trainium_wire": ("__init__", "formats", "keys"),
    "trn_node": ("__init__", "__main__", "files", "imds", "record", "s3", "signing", "web"),
}
"""The modules of `trn-node report`, which must work before the node script has been downloaded."""


@dataclass(frozen=True, kw_only=True)
class NodeFile:
    """One file. `text` is without the final line feed, which the node adds."""

    path: str
    mode: str
    text: str


def mark(files: Sequence[NodeFile]) -> str:
    """A word that is not in any file, to separate them in one here-document."""
    word = "@@FILE"
    while any(word in file.text for file in files):
        word += "_"
    return word


def all_files(node: NodeSettings, *, boot_script: str, constant_text: Callable[[str], str]) -> tuple[NodeFile, ...]:
    """All files of a node; those that start services are last.

    constant_text: returns the text of a file that is the same on every node, by template name.
    """
    setup: list[NodeFile] = []
    if node.setup_script:
        setup.append(_file("/opt/trn/apt.conf", constant_text("apt.conf")))
        setup.append(_file("/var/lib/trn/setup.sh", node.setup_script, mode="700"))
    units = ("trn-node-watch.service", "trn-node.service")
    return (
        _file("/etc/trn/plan.json", json.dumps(node_expectations(node), indent=1)),
        *(_module(package, name) for package in _PACKAGES for name in _modules(package)),
        _command(constant_text),
        _file("/etc/profile.d/trn.sh", constant_text("profile.sh")),
        _file("/etc/needrestart/conf.d/trn-node.conf", constant_text("needrestart.conf")),
        _file(
            f"/etc/sysusers.d/{JOB_USER}.conf", f'u {JOB_USER} {JOB_UID} "Jobs of trn" /nonexistent /usr/sbin/nologin'
        ),
        # After Ubuntu's file, whose list it extends.
        _file("/etc/apt/apt.conf.d/60trn-node", constant_text("unattended.conf")),
        *setup,
        _file("/opt/trn/boot.sh", boot_script, mode="755"),
        *(_file(f"/etc/systemd/system/{name}", constant_text(name)) for name in units),
    )


def reporting_files(*, constant_text: Callable[[str], str]) -> tuple[NodeFile, ...]:
    """The files that a node needs to report, and to download the others."""
    modules = [(package, name) for package, names in _REPORTING_MODULES.items() for name in names]
    return (*(_module(package, f"{name}.py") for package, name in modules), _command(constant_text))


def _modules(package: str) -> list[str]:
    return sorted(file.name for file in _PACKAGES[package].iterdir() if file.name.endswith(".py"))


def _module(package: str, name: str) -> NodeFile:
    return _file(f"/opt/trn/{package}/{name}", (_PACKAGES[package] / name).read_text())


def _command(constant_text: Callable[[str], str]) -> NodeFile:
    return _file("/usr/local/bin/trn-node", constant_text("trn-node.sh"), mode="755")


def _file(path: str, text: str, *, mode: str = "644") -> NodeFile:
    return NodeFile(path=path, mode=mode, text=text.rstrip("\n"))


_SOURCES = files("trainium_userdata") / "node"
_PACKAGES = {
    "trainium_wire": files("trainium_wire"),
    **{package: _SOURCES / package for package in ("trn_node", "trn_job", "trn_cache")},
}
