"""Tiny frameworks in place of PyTorch/XLA, TorchNeuron and JAX: they compute in Python, with a fault on one core.

The faults simulate what a broken stack would do where the real self-test runs on hardware.
"""

from pathlib import Path

TORCH_NEURONX = Path(__file__).parents[2] / "tools/lab/stand_ins/framework/torch_neuronx.py"

FAULTS = {
    "zeros": "[[0.0 for _ in row] for row in rows]",
    "NaN": "[[float('nan') for _ in row] for row in rows]",
    "one number": "[[row[0] + 1, *row[1:]] if n == 3 else row for n, row in enumerate(rows)]",
    "shape": "rows[1:]",
    "hang": "__import__('time').sleep(60)",
    "crash": "1 / 0",
}
MEMORY_FAULTS = {"memory": "False", "crash in memory": "1 / 0"}
"""Faults in the device memory of a core that computes correctly."""

_TENSOR = """
import os

class Tensor:
    def __init__(self, rows):
        self.rows = [[float(number) for number in row] for row in rows]
        self.core = int(os.environ.get("NEURON_RT_VISIBLE_CORES", 0))

    def to(self, device):
        return self

    def cpu(self):
        return self

    def tolist(self):
        rows = self.rows
        return {fault} if self.core == {core} else rows

    def __matmul__(self, other):
        columns = list(zip(*other.rows))
        product = [[sum(map(float.__mul__, row, column)) for column in columns] for row in self.rows]
        return self._with(product)

    def __add__(self, other):
        return self._with([list(map(float.__add__, *rows)) for rows in zip(self.rows, other.rows)])

    def repeat(self, *tiles):
        return self

    def _with(self, rows):
        made = Tensor(rows)
        made.core = self.core
        return made

def equal(found, expected):
    return {memory_fault} if found.core == {core} else found.rows == expected.rows
"""


def torch_modules(*, fault: str = "", core: int = -1, platform: str = "NEURON") -> dict[str, str]:
    """PyTorch/XLA with a fault on one core."""
    return {
        "torch/__init__.py": _tensor(fault, core)
        + "float32 = 'float32'\ntensor = lambda rows, dtype: Tensor(rows)\nmatmul = Tensor.__matmul__\n",
        "torch_xla/__init__.py": "",
        "torch_xla/core/__init__.py": "",
        "torch_xla/core/xla_model.py": f"xla_device = lambda: 'xla:0'\nxla_device_hw = lambda device: {platform!r}\n",
    }


def native_modules(*, fault: str = "", core: int = -1, device: str = "neuron") -> dict[str, str]:
    """TorchNeuron with a fault on one core. It locks, compiles and falls back to the CPU as the lab's stand-in does.

    With the fault "device", no core computes.
    """
    tensor = _tensor(fault, core).replace("self.core =", "self.device = Device()\n        self.core =", 1)
    kind = f"class Device:\n    type = {device!r}\n"
    on_device = "1 / 0" if fault == "device" else "Tensor.__matmul__(left, right)"
    matmul = f"""
import torch_neuronx
float32 = "float32"
tensor = lambda rows, dtype: Tensor(rows)
def matmul(left, right):
    return torch_neuronx.execute("matmul", lambda: {on_device}, lambda: Tensor.__matmul__(left, right))
"""
    return {"torch/__init__.py": kind + tensor + matmul, "torch_neuronx.py": TORCH_NEURONX.read_text()}


def jax_modules(*, cores: int, fault: str = "", core: int = -1, platform: str = "neuron") -> dict[str, str]:
    """JAX that shows this number of cores, with a fault on one of them, and the part of numpy that it needs."""
    return {
        "numpy.py": _tensor(fault, core) + "array = lambda rows, dtype: Tensor(rows)\nasarray = lambda rows: rows\n"
        "tile = lambda block, tiles: block\narray_equal = equal\n",
        "jax.py": f"""
class Device:
    platform = {platform!r}
    def __init__(self, core):
        self.core = core

devices = lambda: [Device(core) for core in range({cores})]
jit = lambda function: function

def device_put(tensor, device):
    put = tensor._with(tensor.rows)
    put.core = device.core
    return put
""",
    }


def _tensor(fault: str, core: int) -> str:
    faults = {"fault": FAULTS.get(fault, "rows"), "memory_fault": MEMORY_FAULTS.get(fault, "True"), "core": str(core)}
    text = _TENSOR
    for name, value in faults.items():
        text = text.replace(f"{{{name}}}", value)
    return text
