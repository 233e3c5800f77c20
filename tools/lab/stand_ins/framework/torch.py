"""The part of PyTorch that the self-test of a core or GPU needs, on the CPU. A core can be set to return zeros."""

import os
import sys

sys.path.append("/usr/lib/trnlab")
from node_hardware import description, devices_present, is_driver_loaded

float32 = "float32"


class Device(str):
    """A device by its name: "cpu", "xla:0" or "cuda"."""

    @property
    def type(self) -> str:
        return self.partition(":")[0]


class Tensor:
    """A matrix on a device."""

    def __init__(self, rows: list[list[float]], device: str = "cpu") -> None:
        self.rows = rows
        self.device = Device(device)

    def to(self, device: str) -> "Tensor":
        return Tensor(self.rows, device)

    def cpu(self) -> "Tensor":
        return Tensor(self.rows)

    def tolist(self) -> list[list[float]]:
        return self.rows

    def repeat(self, *_tiles: int) -> "Tensor":
        """Returns itself: a block of device memory would take a quarter of a gigabyte."""
        return self

    def __add__(self, other: "Tensor") -> "Tensor":
        rows = [[a + b for a, b in zip(*both, strict=True)] for both in zip(self.rows, other.rows, strict=True)]
        return _answered(rows, self.device)


def tensor(rows: list[list[float]], dtype: str) -> Tensor:
    assert dtype == float32
    return Tensor(rows)


def matmul(left: Tensor, right: Tensor) -> Tensor:
    columns = list(zip(*right.rows, strict=True))
    rows = [[float(sum(a * b for a, b in zip(row, column, strict=True))) for column in columns] for row in left.rows]
    return _answered(rows, left.device)


def equal(actual: Tensor, expected: Tensor) -> bool:
    return actual.rows == expected.rows


def visible_core() -> int:
    return int(os.environ.get("NEURON_RT_VISIBLE_CORES") or os.environ["CUDA_VISIBLE_DEVICES"])


def open_core() -> None:
    """Raise the runtime's error if the driver is not loaded, or the visible core does not exist."""
    hardware = description()
    cores = hardware["neuron_cores_per_device"] // hardware["logical_neuroncore_config"]
    if not is_driver_loaded() or visible_core() >= cores * len(devices_present(hardware)):
        raise RuntimeError("nrt_init failed: NRT_FAILURE")


def _answered(rows: list[list[float]], device: str) -> Tensor:
    if device != "cpu" and visible_core() in description()["zero_cores"]:
        rows = [[0.0] * len(row) for row in rows]
    return Tensor(rows, device)
