"""An EC2 instance type with Neuron devices or GPUs."""

from collections.abc import Mapping
from dataclasses import dataclass

from trainium_runtime.quota_need import type_family, type_generation


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """An EC2 instance type, as stated by its sources. It has either Neuron devices or GPUs.

    Attributes:
        accelerator: Model of the devices, such as Trainium2.
        device_memory_gib: Memory of each device.
        network_gbps: Bandwidth of the instance in Gbit/s.
        nvme_disk_gb: Size of each disk of the instance store.
        usage_classes: EC2's terms for the purchase options, such as spot.
        zones: IDs of the Availability Zones that offer the type, by region.
        neuron_cores_per_device: Number of physical NeuronCores.
        logical_neuroncore_configs: Allowed numbers of physical cores per logical core. Empty: always one.
        instances_per_ultraserver: 1 for types that are not sold in UltraServers.
    """

    name: str
    accelerator: str
    vcpus: int
    memory_gib: int
    device_memory_gib: int
    network_cards: int
    efa_interfaces: int
    network_gbps: float
    nvme_disks: int
    nvme_disk_gb: int
    usage_classes: tuple[str, ...]
    zones: Mapping[str, tuple[str, ...]]
    neuron_devices: int = 0
    neuron_cores_per_device: int = 0
    logical_neuroncore_configs: tuple[int, ...] = ()
    instances_per_ultraserver: int = 1
    gpus: int = 0

    @property
    def family(self) -> str:
        """The letters at the start of the name: `trn` for trn1n.32xlarge. Most quotas are per family."""
        return type_family(self.name)

    @property
    def generation(self) -> str:
        """The family with its number: `p5` for p5en.48xlarge. Spot quotas of P instances are per generation."""
        return type_generation(self.name)

    @property
    def is_gpu(self) -> bool:
        return self.gpus > 0

    @property
    def devices(self) -> int:
        """Number of Neuron devices or GPUs."""
        return self.gpus or self.neuron_devices

    @property
    def device_noun(self) -> str:
        return "GPUs" if self.is_gpu else "Neuron devices"

    @property
    def default_logical_neuroncore_config(self) -> int:
        """Default number of physical cores per logical core: the largest that the type allows."""
        return max(self.logical_neuroncore_configs, default=1)

    @property
    def physical_neuron_cores(self) -> int:
        return self.neuron_devices * self.neuron_cores_per_device

    @property
    def total_device_memory_gib(self) -> int:
        return self.devices * self.device_memory_gib

    @property
    def zone_ids(self) -> tuple[str, ...]:
        return tuple(zone for zones in self.zones.values() for zone in zones)

    def logical_neuron_cores(self, logical_neuroncore_config: int) -> int:
        """Number of logical NeuronCores of one instance."""
        return self.physical_neuron_cores // logical_neuroncore_config
