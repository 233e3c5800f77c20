"""What a node looks at before it calls itself proven: the names that records, settings and tables share."""

from collections.abc import Mapping

NODE_CHECKS: Mapping[str, str] = {
    "driver": "the Neuron driver is loaded, and goes with the runtime",
    "neuron-devices": "neuron-ls lists every device of the type",
    "neuron-cores": "the devices hold as many logical NeuronCores as the plan says",
    "device-memory": "each device has its memory",
    "lnc": "physical cores per logical NeuronCore (LNC)",
    "efa-devices": "one EFA device for each EFA interface",
    "efa-provider": "libfabric finds the EFA provider",
    "framework": "the framework that the image promises is there",
    "self-test": "a small computation on every NeuronCore gives what the CPU gives",
    "collectives": "nccom-test is correct over all cores of the node",
    "memlock": "processes may lock all their memory, as EFA needs",
    "nofile": "processes may open enough files",
    "reserved-ports": "the rendezvous port is kept from other use",
    "time-sync": "the clock is synchronised",
    "nvme": "the instance's local disks are there and mounted",
    "peers": "every other node of the cluster can be reached",
}
"""Name of each check and what it finds out."""
