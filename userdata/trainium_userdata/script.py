"""The user data of a node and the scripts that set it up, rendered from templates/ and node/."""

import hashlib
from collections.abc import Mapping
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined

from trainium_core.catalog.neuron_software import neuron_packages
from trainium_core.facts import facts
from trainium_core.plan.node_settings import NodeSettings
from trainium_userdata import eks
from trainium_userdata.document import cloud_config, user_data
from trainium_userdata.expectations import node_expectations
from trainium_userdata.locations import NodeLocations
from trainium_userdata.node_files import all_files, eks_files, mark, reporting_files, slurm_files
from trainium_wire.kubernetes import UNVERIFIED

# The usual delimiters {{, {% and {# occur in scripts; these do not.
TEMPLATES = Environment(
    loader=PackageLoader("trainium_userdata"),
    undefined=StrictUndefined,
    variable_start_string="<{",
    variable_end_string="}>",
    block_start_string="<%",
    block_end_string="%>",
    comment_start_string="<#",
    comment_end_string="#>",
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,
)

_NODE_STEPS = {
    "stop_watch": "watch.sh.j2",
    "write_environment": "environment.sh.j2",
    "install_software": "install_software.sh.j2",
    "load_driver": "install_software.sh.j2",
    "reserve_ports": "ports.sh.j2",
    "prepare_scratch": "scratch.sh.j2",
    "mount_file_systems": "mounts.sh.j2",
    "choose_framework": "framework.sh.j2",
    "verify_node": "verify.sh.j2",
    "run_setup_script": "setup.sh.j2",
    "start_watch": "watch.sh.j2",
}
"""The boot steps of a node of a plain cluster, in order: the name of each function, and its template."""

_SLURM_STEPS = {
    **{step: template for step, template in _NODE_STEPS.items() if template != "install_software.sh.j2"},
    "remember_counters": "slurm_counters.sh.j2",
}
"""The boot steps of a Slurm node, whose image has all software."""
_LOGIN_STEPS = {step: _NODE_STEPS[step] for step in ("write_environment", "mount_file_systems", "choose_framework")}

_EKS_STEPS = {"check_startup_taint": "startup_taint.sh.j2", "verify_node": _NODE_STEPS["verify_node"]}

Role = Literal["node", "login", "slurm", "eks"]
"""A node of a plain cluster, the Slurm login node, a Slurm node, or a node of an EKS cluster before kubelet starts."""

_STEPS_BY_ROLE: Mapping[Role, Mapping[str, str]] = {
    "node": _NODE_STEPS,
    "slurm": _SLURM_STEPS,
    "login": _LOGIN_STEPS,
    "eks": _EKS_STEPS,
}


def node_user_data(
    node: NodeSettings,
    locations: NodeLocations,
    environment: Mapping[str, str] | None = None,
    *,
    script: str | None = None,
) -> str:
    """The user data of a node: one reproducible MIME document, not base64-encoded.

    Its script downloads the node script from `locations.node_script_url`, checks the digest and runs it.

    Args:
        node: The settings of the node.
        locations: The locations of the cluster's resources.
        environment: Variables of scripts and jobs on the node, with values in base64. Default: none.
        script: The output of `node_script`, if it has been rendered already.
    """
    digest = hashlib.sha256((node_script(node) if script is None else script).encode()).hexdigest()
    files = reporting_files(constant_text=_render)
    fetching = _render("fetch_node_script.sh", files=files, mark=mark(files), digest=digest)
    return user_data(cloud_config(locations.lines, environment), fetching)


def slurm_user_data(locations: NodeLocations) -> str:
    """The user data of Slurm nodes and the login node: only cloud-config, which runs before a node registers.

    A shell script would run too late: AWS PCS runs the scripts in user data after the registration, before it starts
    slurmd.
    """
    return user_data(cloud_config(locations.lines))


def node_script(node: NodeSettings) -> str:
    """The script that installs the node program, the boot script and the setup script on a node.

    It is too large for user data. It is reproducible and does not depend on the deployment, so it can be an asset.
    """
    files = all_files(node, boot_script=boot_script(node), constant_text=_render)
    return _render("node_script.sh", files=files, mark=mark(files), limits=facts()["process_limits"])


def slurm_script(node: NodeSettings, role: Literal["slurm", "login"], *, slurm_version: str | None = None) -> str:
    """The script of the nodeBootstrapped action of a Slurm node, or of the login node, which runs before slurmd.

    It downloads nothing and contains no CDK tokens, so its digest is known at synthesis. AWS PCS must run it at every
    boot, and terminate a node on which it fails (EVERY_BOOT, TERMINATE). The boot script is ended after
    pcs.proof_seconds of the facts. A node sends its record to S3 before the script ends; the login node sends none,
    because no job runs there.

    Args:
        node: The settings of the node.
        role: `slurm` for a node that runs jobs, `login` for the login node.
        slurm_version: The Slurm version whose programs are on PATH. Default: the default of new clusters.
    """
    version = slurm_version or facts()["pcs"]["default_version"]

    def rendered(name: str) -> str:
        return _render(name, slurm_version=version)

    files = slurm_files(node, boot_script=boot_script(node, role), constant_text=rendered)
    seconds = facts()["pcs"]["proof_seconds"]
    return _render(
        "slurm_node.sh", files=files, mark=mark(files), limits=facts()["process_limits"], role=role, seconds=seconds
    )


def eks_user_data(locations: NodeLocations, *, script: str) -> str:
    """The user data of a node of an EKS cluster: only cloud-config, to which EKS adds its own part.

    Its files let kubelet register the node with the taint of unverified nodes, and start only after the checks of the
    node script, which they download from `locations.node_script_url`.

    Args:
        locations: The locations of the cluster's resources.
        script: The output of `eks_node_script`.
    """
    digest = hashlib.sha256(script.encode()).hexdigest()
    files = {
        "/etc/eks/nodeadm.d/50-trn.yaml": _render("eks-nodeadm.yaml", taints=eks.TAINTS),
        "/etc/systemd/system/trn-node.service": _render("eks-trn-node.service"),
        "/etc/systemd/system/kubelet.service.d/50-trn.conf": _render("eks-kubelet.conf"),
        "/opt/trn/install.sh": _render("eks_install.sh", digest=digest),
    }
    return user_data(cloud_config(locations.lines, files=files, command="[systemctl, daemon-reload]"))


def eks_node_script(node: NodeSettings) -> str:
    """The script that installs the node program and the boot script on a node of an EKS cluster."""
    files = eks_files(node, boot_script=boot_script(node, "eks"), constant_text=_render)
    return _render("eks_node_script.sh", files=files, mark=mark(files))


def boot_script(node: NodeSettings, role: Role = "node") -> str:
    """The script that sets up a machine at every boot."""
    known = _STEPS_BY_ROLE[role]
    steps = _steps(node, known)
    return _render(
        "boot.sh",
        steps=steps,
        parts=[*dict.fromkeys(known[step] for step in steps), "motd.sh.j2"],
        node=node,
        role="node" if role == "slurm" else role,
        expected=node_expectations(node),
        packages=neuron_packages(),
        # A verified node reports only after its setup script has run; on EKS, after the checks in a pod.
        hold=" --hold" if node.setup_script or role == "eks" else "",
        unverified=UNVERIFIED,
    )


def _steps(node: NodeSettings, known: Mapping[str, str]) -> list[str]:
    wanted = {
        "install_software": node.neuron_software == "install",
        "load_driver": node.neuron_software == "install",
        "prepare_scratch": node.type.nvme_disks > 0,
        "mount_file_systems": bool(node.mounts),
        "run_setup_script": bool(node.setup_script),
    }
    return [step for step in known if wanted.get(step, True)]


def _render(name: str, **values: Any) -> str:
    return TEMPLATES.get_template(f"{name}.j2").render(values)
