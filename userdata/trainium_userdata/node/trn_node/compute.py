"""A small computation on NeuronCores, compared with Python's own; run by the Python of a framework's environment.

Argument: xla or native, for PyTorch on the one core that is visible, or jax, for all cores. Prints a line for each
core: MARK and JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

MARK = "TRN-CORE "
SIZE = 32
Matrix = list[list[float]]


def matrix(rows: int, columns: int) -> Matrix:
    """Ones and twos: sums of their products are exact in bf16 up to this size, and none is zero."""
    return [[1 + (i * rows + j * columns + i * j) % 7 % 2 for j in range(SIZE)] for i in range(SIZE)]


LEFT, RIGHT = matrix(3, 5), matrix(5, 2)
EXPECTED = [sum(LEFT[i][k] * RIGHT[k][j] for k in range(SIZE)) + LEFT[i][j] for i in range(SIZE) for j in range(SIZE)]


def verdict(platform: str, answer: Matrix) -> str:
    """What is wrong with a core's answer; empty when nothing is."""
    if platform.lower() != "neuron":
        return f"computes on {platform}, not on a NeuronCore"
    found = [number for row in answer for number in row]
    if len(found) != len(EXPECTED):
        return f"answers {len(found)} numbers where the CPU gives {len(EXPECTED)}"
    wrong = [place for place, right in enumerate(EXPECTED) if found[place] != right]
    if not wrong:
        return ""
    right = EXPECTED[wrong[0]]
    if not any(found):
        return f"answers zeros where the CPU gives {right}"
    if any(number != number for number in found):
        return f"answers NaN where the CPU gives {right}"
    return f"answers {found[wrong[0]]} where the CPU gives {right}; {len(wrong)} of {len(EXPECTED)} numbers are wrong"


def xla() -> Iterator[tuple[str, Matrix]]:
    torch: Any = import_module("torch")
    xla: Any = import_module("torch_xla.core.xla_model")
    device = xla.xla_device()
    left = torch.tensor(LEFT, dtype=torch.float32).to(device)
    right = torch.tensor(RIGHT, dtype=torch.float32).to(device)
    yield str(xla.xla_device_hw(device)), (torch.matmul(left, right) + left).cpu().tolist()


def native() -> Iterator[tuple[str, Matrix]]:
    torch: Any = import_module("torch")
    left = torch.tensor(LEFT, dtype=torch.float32).to("neuron")
    right = torch.tensor(RIGHT, dtype=torch.float32).to("neuron")
    answer = torch.matmul(left, right) + left
    yield str(answer.device.type), answer.cpu().tolist()


def jax() -> Iterator[tuple[str, Matrix]]:
    jax: Any = import_module("jax")
    numpy: Any = import_module("numpy")
    left, right = numpy.array(LEFT, dtype="float32"), numpy.array(RIGHT, dtype="float32")
    compute = jax.jit(_compute)
    for device in jax.devices():
        answer = compute(jax.device_put(left, device), jax.device_put(right, device))
        yield str(device.platform), numpy.asarray(answer).tolist()


def _compute(left: Any, right: Any) -> Any:
    return left @ right + left


if __name__ == "__main__":
    for platform, answer in {"xla": xla, "native": native, "jax": jax}[sys.argv[1]]():
        print(MARK + json.dumps(verdict(platform, answer)), flush=True)
