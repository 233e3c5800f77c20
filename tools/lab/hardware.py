"""The hardware of a node as its stand-ins report it: one description, which a test changes to simulate a fault."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tools.lab.neuron_software import default_image
from trainium_core.catalog.neuron_software import neuron_packages
from trainium_core.plan import Plan
from trainium_core.plan.network_layout import network_interfaces

LOCAL_DISK_BYTES = 2**30


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """The hardware of one node. From `driver_loads` on, a field that does not have its default simulates a fault.

    Attributes:
        neuron_release: The release of the Neuron SDK whose behaviour the programs have.
        nvme_limit_bytes: How much fits on the local disks, which are in the memory of this machine.
        zero_cores: NeuronCores that answer every computation with zeros.
        wrong_collectives: Whether an all-reduce over the node gives wrong sums.
        efa_traffic: Whether data that the node sends to other nodes over EFA arrives.
        clock_synchronised: Whether the node's clock is synchronised.
        lustre_answers: Whether a reachable Lustre file system answers.
        failed_executions: Executions of a job that fail in each period of neuron-monitor.
        corrected_errors: Corrected memory errors of each device.
    """

    accelerator: str
    neuron_devices: int
    neuron_cores_per_device: int
    logical_neuroncore_config: int
    device_memory_bytes: int
    efa_devices: int
    nvme_disks: int
    nvme_disk_gb: int
    gpus: int
    neuron_release: str
    nvme_limit_bytes: int = LOCAL_DISK_BYTES
    driver_loads: bool = True
    missing_devices: tuple[int, ...] = ()
    zero_cores: tuple[int, ...] = ()
    wrong_collectives: bool = False
    efa_traffic: bool = True
    clock_synchronised: bool = True
    lustre_answers: bool = True
    failed_executions: int = 0
    corrected_errors: int = 0

    def description(self) -> dict[str, Any]:
        return asdict(self)

    def sysfs(self) -> Mapping[str, str]:
        """Files below /sys of a node with this hardware, and their text."""
        # On EC2, this ID begins with ec2; cloud-init reads it where DMI is missing.
        files = {"hypervisor/uuid": "ec2e1916-9099-7caf-fd21-012345abcdef\n"}
        for number in range(self.efa_devices):
            device = f"class/infiniband/rdmap{number}s27"
            files[f"{device}/node_type"] = "4: unspecified\n"
            for counter in ("tx_bytes", "rx_bytes", "retrans_pkts"):
                files[f"{device}/ports/1/hw_counters/{counter}"] = "0\n"
        if self.gpus:
            files["module/nvidia/version"] = "580.126.09\n"
        return files


def hardware_of(plan: Plan) -> Hardware:
    """The hardware of a healthy node of the plan."""
    kind = plan.type
    installs = plan.node.neuron_software == "install"
    return Hardware(
        accelerator=kind.accelerator,
        neuron_devices=kind.neuron_devices,
        neuron_cores_per_device=kind.neuron_cores_per_device,
        logical_neuroncore_config=plan.lnc,
        device_memory_bytes=kind.device_memory_gib * 2**30,
        efa_devices=sum(interface.interface_type is not None for interface in network_interfaces(plan)),
        nvme_disks=kind.nvme_disks,
        nvme_disk_gb=kind.nvme_disk_gb,
        gpus=kind.gpus,
        neuron_release=neuron_packages()["release"]["sdk"] if installs else default_image()["neuron_sdk"],
    )
