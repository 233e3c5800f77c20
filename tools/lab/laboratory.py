"""The running lab: network, services and nodes, which end when the lab is switched off."""

import os
import shutil
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3

from tools.lab.base_rootfs import node_rootfs
from tools.lab.certificates import Certificates, make_certificates
from tools.lab.hardware import Hardware
from tools.lab.instance import Instance
from tools.lab.layers import write_bare_layer, write_gpu_image_layer, write_hardware_layer, write_image_layer
from tools.lab.metadata import MetadataService, Subject, metadata_service
from tools.lab.network import switch
from tools.lab.node import Node
from tools.lab.package_hosts import PackageHosts, write_package_hosts
from tools.lab.paths import REPOSITORY, RUN
from tools.lab.plans import quotas
from tools.lab.proxy import Proxy, proxy
from trainium_local import lifecycle
from trainium_local.environment import Connection, safe_environment, tool_folders
from trainium_local.server import Settings

REGION = "us-west-2"
FIRST_OF_NAMESPACE = 1
"""The process ID of the lab in its own PID namespace."""
HOSTS = (f"*.{REGION}.amazonaws.com", f"*.s3.{REGION}.amazonaws.com", "*.repos.neuron.amazonaws.com", "*.amazonaws.com")


@dataclass(kw_only=True)
class Laboratory:
    """The parts of a running lab. The environment of this process reaches only the embedded AWS.

    Attributes:
        hardware: The layer that every node has.
        bare: Layers of a node's disk without Neuron software.
        image: Layers with the software of a Neuron DLAMI.
        gpu_image: Layers with the software of a GPU DLAMI.
    """

    connection: Connection
    proxy: Proxy
    metadata: MetadataService
    certificates: Certificates
    package_hosts: PackageHosts
    hardware: Path
    bare: Sequence[Path]
    image: Sequence[Path]
    gpu_image: Sequence[Path]
    nodes: list[Node] = field(default_factory=list[Node])
    delivered: int = 0
    """Number of nodes made so far."""

    def client(self, service: str) -> Any:
        return boto3.Session().client(service)

    def node(self, instance: Instance, hardware: Hardware, *, layers: Sequence[Path] | None = None) -> Node:
        """Make a node for the instance, powered off.

        Args:
            layers: Layers of its disk. Default: those of its DLAMI.
        """
        image = self.gpu_image if hardware.gpus else self.image
        node = Node(instance, hardware, layers=layers or image, folder=RUN / "nodes")
        node.trust(self.certificates)
        self.metadata.subjects[instance.address] = Subject(instance)
        self.nodes.append(node)
        self.delivered += 1
        return node

    def remove(self, node: Node) -> None:
        self.nodes.remove(node)
        node.remove()
        self.proxy.end_faults(node.instance.address)


@contextmanager
def laboratory() -> Generator[Laboratory]:
    """Switch the lab on.

    Raises:
        RuntimeError: This process is not the first one in the namespaces that `python -m tools.lab` makes.
    """
    if os.getpid() != FIRST_OF_NAMESPACE:
        raise RuntimeError(
            "the lab replaces network links, mounts and DNS: start it with `python -m tools.lab`, or make lab"
        )
    base = node_rootfs().folder
    shutil.rmtree(RUN, ignore_errors=True)
    RUN.mkdir(parents=True)
    with ExitStack() as on:
        on.enter_context(switch(RUN))
        certificates = make_certificates(RUN / "certificates", HOSTS)
        settings = Settings(region=REGION, stand_in_nodes=False, quotas=quotas())
        connection = lifecycle.start(RUN / "aws", settings).connection
        on.callback(lifecycle.stop, RUN / "aws")
        safe = safe_environment(os.environ, connection, tools=tool_folders(REPOSITORY))
        os.environ.clear()
        os.environ.update(safe, CDK_HOME=str(RUN / "cdk"))
        package_hosts = write_package_hosts(RUN / "packages")
        hardware = write_hardware_layer(RUN / "hardware")
        below = [hardware, base]
        image = write_image_layer(RUN / "image", RUN / "image-work", below=below, packages=package_hosts.image_packages)
        lab = Laboratory(
            connection=connection,
            proxy=on.enter_context(proxy(connection, files=package_hosts.hosts, certificates=certificates)),
            metadata=on.enter_context(metadata_service()),
            certificates=certificates,
            package_hosts=package_hosts,
            hardware=hardware,
            bare=[write_bare_layer(RUN / "bare"), *below],
            image=[image, *below],
            gpu_image=[write_gpu_image_layer(RUN / "gpu-image", base=base), *below],
        )
        try:
            yield lab
        finally:
            for node in list(lab.nodes):
                lab.remove(node)
