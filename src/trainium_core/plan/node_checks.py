"""The checks of a node, by the names that node records and settings use."""

from collections.abc import Mapping

NODE_CHECKS: Mapping[str, str] = {
    "driver": "the driver of the devices is loaded, and the Neuron driver is compatible with the runtime",
    "neuron-devices": "neuron-ls lists every device of the type",
    "gpus": "nvidia-smi lists every GPU of the type",
    "gpu-settings": "no GPU is partitioned (MIG), and each keeps its state between processes (persistence mode)",
    "neuron-cores": "the devices have the planned number of logical NeuronCores",
    "device-memory": "each device has its memory",
    "lnc": "the logical NeuronCores consist of the planned number of physical cores (LNC)",
    "efa-devices": "there is one EFA device for each EFA interface",
    "efa-provider": "libfabric finds the EFA provider",
    "efa-domains": "libfabric opens each EFA device",
    "framework": "the framework that the image promises is installed",
    "dcgm": "NVIDIA's DCGM, if it is installed, finds no problem of the GPUs and their software",
    "self-test": "a small computation on every NeuronCore or GPU matches the CPU's result",
    "memory-test": "every NeuronCore or GPU reads back what it wrote to its device memory",
    "collectives": "nccom-test over all cores of the node is correct; on GPUs, nccl-tests, if they are installed",
    "hardware-errors": "the driver's counters show no errors of devices and cores, and the firmware reports no problem",
    "memlock": "processes may lock all their memory, as EFA needs",
    "nofile": "processes may open enough files",
    "reserved-ports": "the ports of the rendezvous and of the Neuron runtime's bootstrap are reserved",
    "time-sync": "the clock is synchronised",
    "nvme": "the instance's local disks exist and are mounted",
    "ultraserver": "NeuronLink reaches other nodes of the UltraServer",
    "peers": "every other node of the cluster can be reached",
    "internode-collectives": "an all-reduce over the cores or GPUs of all nodes, over EFA, matches the CPU's result",
}
"""The name of each check, and what it verifies."""
