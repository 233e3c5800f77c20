"""The settings that all nodes of a cluster share, from a plan or from the parameters of a construct."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from trainium_core.catalog.instance_type import InstanceType
from trainium_core.catalog.neuron_software import Framework
from trainium_core.plan.network_layout import NetworkInterface, type_interfaces
from trainium_core.plan.settings.network import CardInterfaceType
from trainium_core.plan.settings.node import NeuronSoftware, Verification
from trainium_core.plan.values import PlanValues

Mount = Literal["lustre", "efs"]


@dataclass(frozen=True, kw_only=True)
class NodeSettings:
    """The settings of a node, which do not depend on the number of nodes.

    Attributes:
        logical_neuroncore_config: Physical NeuronCores per logical NeuronCore; None for the default of the type.
        secondary_interface_type: Type of the interfaces on network cards after the first.
        framework: Framework that the image's parameter promises; None for any.
        mounts: Kinds of file systems that the node mounts.
        setup_script: Text of the user's script; None if there is none.
        metrics_port: TCP port on which the node serves its metrics; None if it does not.
    """

    cluster_name: str
    type: InstanceType
    logical_neuroncore_config: int | None = None
    secondary_interface_type: CardInterfaceType = "efa"
    framework: Framework | None = None
    neuron_software: NeuronSoftware = "image"
    mounts: tuple[Mount, ...] = ()
    setup_script: str | None = None
    suppress_checks: tuple[str, ...] = ()
    verification: Verification = "enforce"
    internode_ssh: bool = False
    metrics_port: int | None = None

    @property
    def settings(self) -> Mapping[str, object]:
        """The values by the keys of their settings in a plan."""
        return {
            "instance_type": self.type.name,
            "logical_neuroncore_config": self.logical_neuroncore_config,
            "secondary_interface_type": self.secondary_interface_type,
            "neuron_software": self.neuron_software,
            "setup_script": self.setup_script,
            "suppress_checks": self.suppress_checks,
            "verification": self.verification,
            "internode_ssh": self.internode_ssh,
            "metrics_port": self.metrics_port,
        }

    @property
    def uses_efa(self) -> bool:
        return self.type.efa_interfaces > 0

    @property
    def lnc(self) -> int:
        """Physical NeuronCores per logical NeuronCore (LNC)."""
        return self.logical_neuroncore_config or self.type.default_logical_neuroncore_config

    @property
    def neuron_cores(self) -> int:
        """Logical NeuronCores of the node."""
        return self.type.logical_neuron_cores(self.lnc)

    @property
    def processes(self) -> int:
        """The processes of torchrun on the node: one for each GPU or logical NeuronCore."""
        return self.type.gpus or self.neuron_cores

    @property
    def network_interfaces(self) -> tuple[NetworkInterface, ...]:
        return type_interfaces(self.type, self.secondary_interface_type)

    @property
    def addresses(self) -> int:
        """The number of subnet addresses of the node."""
        return sum(interface.has_address for interface in self.network_interfaces)


def node_settings(plan: PlanValues) -> NodeSettings:
    """The settings of each node of a plan."""
    mounted: tuple[tuple[Mount, object], ...] = (
        ("lustre", plan.file_systems.fsx_lustre),
        ("efs", plan.file_systems.efs),
    )
    return NodeSettings(
        cluster_name=plan.cluster_name,
        type=plan.type,
        logical_neuroncore_config=plan.logical_neuroncore_config,
        secondary_interface_type=plan.network.secondary_interface_type,
        framework=plan.framework,
        neuron_software=plan.node.neuron_software,
        mounts=tuple(kind for kind, wanted in mounted if wanted is not None),
        setup_script=plan.setup_script,
        suppress_checks=plan.node.suppress_checks,
        verification=plan.node.verification,
        internode_ssh=plan.node.internode_ssh,
        metrics_port=plan.node.metrics_port,
    )
