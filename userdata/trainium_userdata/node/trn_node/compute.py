"""Computations on NeuronCores or GPUs, compared with results of the CPU. Runs in a framework's environment.

Arguments: xla, native or cuda, for PyTorch on the only visible core or GPU, or jax, for all cores; and how many blocks
of device memory each core reads, by default none. The program prints a line for each core: MARK and the problem with a
small computation, in JSON. Then, if there are blocks, it prints another line for each core: MEMORY_MARK and the problem
with its memory.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

MARK = "TRN-CORE "
MEMORY_MARK = "TRN-MEMORY "
SIZE = 32
CUDA = "cuda"
Matrix = list[list[float]]


def matrix(rows: int, columns: int) -> Matrix:
    """Ones and twos: at this size, sums of their products are exact in bf16 and nonzero."""
    return [[1 + (i * rows + j * columns + i * j) % 7 % 2 for j in range(SIZE)] for i in range(SIZE)]


LEFT, RIGHT = matrix(3, 5), matrix(5, 2)
EXPECTED = [sum(LEFT[i][k] * RIGHT[k][j] for k in range(SIZE)) + LEFT[i][j] for i in range(SIZE) for j in range(SIZE)]


TILE = [[(31 * i + j) % 127 + 1 for j in range(64)] for i in range(61)]
"""Integers whose doubles are exact in bf16. Its height is prime, so rows at a distance of a power of two differ: with a
wrong bit in the address of a row, other values are read."""
TILES = 1024, 16
"""Tiles of a block, in rows and columns: 244 MiB in fp32, more than the on-chip memory (24 MiB of SBUF in a
NeuronCore-v2, 28 MiB in v3: AWS Neuron SDK documentation, NKI architecture guides)."""

Found = tuple[str, Matrix]
"""The platform that computed, and its result."""


def verdict(platform: str, answer: Matrix, wanted: str = "neuron") -> str:
    """The problem with a core's result; empty if there is none."""
    if platform.lower() != wanted:
        return f"computes on {platform}, not on a {'GPU' if wanted == CUDA else 'NeuronCore'}"
    found = [number for row in answer for number in row]
    if len(found) != len(EXPECTED):
        return f"returns {len(found)} numbers where the CPU returns {len(EXPECTED)}"
    wrong = [place for place, right in enumerate(EXPECTED) if found[place] != right]
    if not wrong:
        return ""
    right = EXPECTED[wrong[0]]
    if not any(found):
        return f"returns zeros where the CPU returns {right}"
    if any(number != number for number in found):
        return f"returns NaN where the CPU returns {right}"
    return f"returns {found[wrong[0]]} where the CPU returns {right}; {len(wrong)} of {len(EXPECTED)} numbers are wrong"


def xla(blocks: int) -> Iterator[Found | bool]:
    torch: Any = import_module("torch")
    xla: Any = import_module("torch_xla.core.xla_model")
    device = xla.xla_device()
    left = torch.tensor(LEFT, dtype=torch.float32).to(device)
    right = torch.tensor(RIGHT, dtype=torch.float32).to(device)
    yield str(xla.xla_device_hw(device)), (torch.matmul(left, right) + left).cpu().tolist()
    yield from torch_memory(torch, device, blocks)


def native(blocks: int, device: str = "neuron") -> Iterator[Found | bool]:
    torch: Any = import_module("torch")
    left = torch.tensor(LEFT, dtype=torch.float32).to(device)
    right = torch.tensor(RIGHT, dtype=torch.float32).to(device)
    answer = torch.matmul(left, right) + left
    yield str(answer.device.type), answer.cpu().tolist()
    yield from torch_memory(torch, device, blocks)


def cuda(blocks: int) -> Iterator[Found | bool]:
    return native(blocks, CUDA)


def torch_memory(torch: Any, device: Any, blocks: int) -> Iterator[bool]:
    """Compare each block, doubled on the device while all others stay in its memory, with the result of the CPU."""
    if blocks:
        block = torch.tensor(TILE, dtype=torch.float32).repeat(*TILES)
        doubled = block + block
        held = [block.to(device) for _ in range(blocks)]
        yield all(torch.equal((there + there).cpu(), doubled) for there in held)


def jax(blocks: int) -> Iterator[Found | bool]:
    jax: Any = import_module("jax")
    numpy: Any = import_module("numpy")
    left, right = numpy.array(LEFT, dtype="float32"), numpy.array(RIGHT, dtype="float32")
    compute = jax.jit(_compute)
    for device in jax.devices():
        answer = compute(jax.device_put(left, device), jax.device_put(right, device))
        yield str(device.platform), numpy.asarray(answer).tolist()
    if blocks:
        block = numpy.tile(numpy.array(TILE, dtype="float32"), TILES)
        doubled, double = block + block, jax.jit(_double)
        for device in jax.devices():
            held = [jax.device_put(block, device) for _ in range(blocks)]
            yield all(numpy.array_equal(numpy.asarray(double(there)), doubled) for there in held)


def _compute(left: Any, right: Any) -> Any:
    return left @ right + left


def _double(block: Any) -> Any:
    return block + block


def main(stack: str, blocks: int = 0) -> None:
    wanted = CUDA if stack == CUDA else "neuron"
    for result in {"xla": xla, "native": native, "jax": jax, CUDA: cuda}[stack](blocks):
        if isinstance(result, bool):
            wrong = "" if result else "reads other numbers from device memory than were written there"
            print(MEMORY_MARK + json.dumps(wrong), flush=True)
        else:
            print(MARK + json.dumps(verdict(*result, wanted)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
