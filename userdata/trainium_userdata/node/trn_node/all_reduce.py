"""An all-reduce over all processes of torchrun, compared with the result of the CPU.

Argument: xla, native or cuda. Each process prints MARK and the problem with its sums, in JSON; then the first process
of each node prints BANDWIDTH_MARK and the bus bandwidth in GB/s. Sources: AWS's sample of an all-reduce
(aws-neuron-samples, torch-neuronx/training/aws-batch/all-reduce); for native PyTorch, AWS Neuron SDK documentation,
torch/guides/torch-distributed.rst at 2.33.0.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

MARK = "TRN-ALL-REDUCE "
BANDWIDTH_MARK = "TRN-BANDWIDTH "
ROWS, COLUMNS = 64, 64
TILES = 1024, 16
"""Tiles of a tensor, in rows and columns: 256 MiB in fp32, large enough to measure a link's bandwidth."""
PERIOD = 127
TIMES = 5
GB = 1e9


def tile(of: Callable[[int], int]) -> list[list[int]]:
    """A matrix of the values of a function of period PERIOD."""
    values = [of(place) for place in range(PERIOD)]
    return [[values[(31 * i + j) % PERIOD] for j in range(COLUMNS)] for i in range(ROWS)]


def addend(place: int, rank: int) -> int:
    return (place + rank) % PERIOD + 1


def total(place: int, world: int) -> int:
    """The sum of all ranks' addends, which is exact in fp32 for a hundred thousand ranks."""
    rounds, rest = divmod(world, PERIOD)
    return rounds * sum(range(1, PERIOD + 1)) + sum(addend(place, rank) for rank in range(rest))


def main(stack: str) -> None:
    torch: Any = import_module("torch")
    dist: Any = import_module("torch.distributed")
    reduce, settle, device = {"xla": _xla, "native": _native, "cuda": _cuda}[stack](dist)
    rank, world = dist.get_rank(), dist.get_world_size()
    own = torch.tensor(tile(partial(addend, rank=rank)), dtype=torch.float32).repeat(*TILES)
    sums = torch.tensor(tile(partial(total, world=world)), dtype=torch.float32).repeat(*TILES)
    there = own.to(device)
    wrong = "" if torch.equal(reduce(there).cpu(), sums) else "the sums are not those of the CPU"
    # In one write, because other processes write to the same pipe.
    os.write(1, f"{MARK}{json.dumps(wrong)}\n".encode())
    # Not timed, because it may be compiled as another graph than the one before.
    settle(reduce(there))
    began = time.monotonic()
    for _ in range(TIMES):
        reduced = reduce(there)
        settle(reduced)
    seconds = (time.monotonic() - began) / TIMES
    if os.environ.get("LOCAL_RANK") == "0":
        size = 4 * ROWS * COLUMNS * TILES[0] * TILES[1]
        # The bus bandwidth of nccom-test: the load of each link, independent of the number of ranks.
        os.write(1, f"{BANDWIDTH_MARK}{size / seconds * 2 * (world - 1) / world / GB:.2f}\n".encode())


def _xla(dist: Any) -> tuple[Callable[[Any], Any], Callable[[Any], object], Any]:
    import_module("torch_xla.distributed.xla_backend")
    xm: Any = import_module("torch_xla.core.xla_model")
    runtime: Any = import_module("torch_xla.runtime")
    dist.init_process_group("xla", init_method="xla://")
    # If the two numbers differ, an all-reduce silently does nothing.
    if runtime.world_size() != int(os.environ["WORLD_SIZE"]):
        sys.exit(f"the runtime has {runtime.world_size()} processes, torchrun {os.environ['WORLD_SIZE']}")

    def settle(_: Any) -> None:
        xm.mark_step()
        xm.wait_device_ops()

    return lambda there: xm.all_reduce("sum", there), settle, xm.xla_device()


def _native(dist: Any) -> tuple[Callable[[Any], Any], Callable[[Any], object], Any]:
    import_module("torch_neuronx")
    dist.init_process_group("neuron")
    return *_torch_environment(dist), "neuron"


def _cuda(dist: Any) -> tuple[Callable[[Any], Any], Callable[[Any], object], Any]:
    torch: Any = import_module("torch")
    device = f"cuda:{os.environ['LOCAL_RANK']}"
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    return *_torch_environment(dist), device


def _torch_environment(dist: Any) -> tuple[Callable[[Any], Any], Callable[[Any], object]]:
    def reduce(there: Any) -> Any:
        reduced = there.clone()
        dist.all_reduce(reduced)
        return reduced

    return reduce, lambda reduced: reduced[0][0].item()


if __name__ == "__main__":
    main(sys.argv[1])
