"""The device of PyTorch/XLA: the one NeuronCore that is visible."""

import torch


def xla_device() -> str:
    torch.open_core()
    return "xla:0"


def xla_device_hw(device: str) -> str:
    return "NEURON" if device == "xla:0" else "CPU"
