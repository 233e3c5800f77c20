"""One EC2 instance type with Neuron devices, and what follows from its facts."""

from collections.abc import Mapping
from dataclasses import dataclass

from trainium_runtime.quota_need import family_of


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """One EC2 instance type with Neuron devices, as its sources state it.

    `device_memory_gib` and `neuron_cores_per_device` (physical cores) count one Neuron device; `network_gbps` is
    for the instance; `zones` maps a region to the ids of the Availability Zones that offer the type.
    `logical_neuroncore_configs` lists how many physical cores may form one logical core (empty: fixed at one).
    """

    name: str
    accelerator: str
    vcpus: int
    memory_gib: int
    neuron_devices: int
    neuron_cores_per_device: int
    logical_neuroncore_configs: tuple[int, ...]
    device_memory_gib: int
    network_cards: int
    network_interfaces_per_card: int
    efa_interfaces: int
    network_gbps: float
    nvme_disks: int
    nvme_disk_gb: int
    usage_classes: tuple[str, ...]
    instances_per_ultraserver: int
    zones: Mapping[str, tuple[str, ...]]

    @property
    def family(self) -> str:
        """The letters the name begins with: `trn` for trn1n.32xlarge. Quotas are per family."""
        return family_of(self.name)

    @property
    def default_logical_neuroncore_config(self) -> int:
        """Physical cores per logical core unless the plan says otherwise: the largest the type allows."""
        return max(self.logical_neuroncore_configs, default=1)

    @property
    def physical_neuron_cores(self) -> int:
        return self.neuron_devices * self.neuron_cores_per_device

    @property
    def total_device_memory_gib(self) -> int:
        return self.neuron_devices * self.device_memory_gib

    @property
    def zone_ids(self) -> tuple[str, ...]:
        return tuple(zone for zones in self.zones.values() for zone in zones)

    def logical_neuron_cores(self, logical_neuroncore_config: int) -> int:
        """What torchrun, JAX and `neuron-ls` see on one instance."""
        return self.physical_neuron_cores // logical_neuroncore_config
