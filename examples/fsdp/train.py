"""Trains a transformer with FSDP2 and tensor parallelism, and resumes from its newest sharded checkpoint.

    torchrun --nproc_per_node=4 train.py --tensor-parallel 2    four processes on this machine
    trn run job.toml                                            one process per logical NeuronCore, on every node

docs/guides/example-fsdp.md explains the choices.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.distributed.nn  # If imported after init_process_group, its default arguments would keep the group alive.
from model import Transformer, split
from torch import Tensor
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh

RANK, PROCESSES = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])  # as torchrun sets them
PROCESSES_PER_NODE = int(os.environ["LOCAL_WORLD_SIZE"])
CHECKPOINTS = Path(os.environ.get("TRN_CHECKPOINT_DIR", "checkpoints"))

notice_received = False


def main() -> None:
    options = read_options()
    signal.signal(signal.SIGUSR1, remember_notice)
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    dist.init_process_group({"neuron": "neuron", "cuda": "nccl"}.get(device.type, "gloo"))
    objects = dist.new_group(backend="gloo")  # Saving and loading exchange Python objects, which stay on the CPU.
    shape = (PROCESSES // options.tensor_parallel, options.tensor_parallel)
    mesh = init_device_mesh(device.type, shape, mesh_dim_names=("data", "tensor"))

    data = torch.frombuffer(bytearray(options.data.read_bytes()), dtype=torch.uint8)
    torch.manual_seed(options.seed)  # the same initial weights in every process
    dimensions = {name: getattr(options, name) for name in ("context", "width", "layers", "heads")}
    model = Transformer(**dimensions).to(device)
    split(model, mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    first = resume(model, optimizer, objects)
    if RANK == 0:
        print(f"{device.type}, data-parallel {shape[0]}, tensor-parallel {shape[1]}, after step {first}", flush=True)

    reported, report_time = first, time.monotonic()
    for step in range(first + 1, options.steps + 1):
        inputs, targets = (part.to(device) for part in batch_of(step, data, options, mesh["data"].get_local_rank()))
        loss = torch.nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        stopping = False
        if step % options.report_every == 0 or step == options.steps:
            status = torch.stack([loss.detach(), torch.tensor(float(notice_received)).to(device)])
            dist.all_reduce(status)
            total_loss, noticed = status.tolist()  # waits for the device
            stopping = noticed > 0  # if one process got the signal, all stop after the same step
            if RANK == 0:
                now, tokens = time.monotonic(), (step - reported) * options.context * options.batch * shape[0]
                progress = f"TRN step={step} loss={total_loss / PROCESSES:.6f} tokens={tokens}"
                print(f"{progress} seconds={now - report_time:.6f}", flush=True)
                reported, report_time = step, now
        if step % options.checkpoint_every == 0 or step == options.steps or stopping:
            dcp.save(state(model, optimizer, step), checkpoint_id=place_of(step), process_group=objects)
        if stopping and step < options.steps:
            if RANK == 0:
                print(f"stopped by SIGUSR1, saved after step {step}", flush=True)
            break
    dist.barrier()  # Meanwhile threads of gloo release their tensors, without which the next line can block.
    dist.destroy_process_group()


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a transformer with FSDP2 and tensor parallelism.")
    parser.add_argument("--tensor-parallel", type=int, default=1, help="processes that share each layer")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[1] / "lm" / "persuasion.txt")
    parser.add_argument("--steps", type=int, default=200, help="in total, including those before a resume")
    parser.add_argument("--batch", type=int, default=8, help="sequences in a step of one data-parallel rank")
    parser.add_argument("--context", type=int, default=128, help="bytes in a sequence")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--report-every", type=int, default=10, help="steps between progress lines")
    parser.add_argument("--checkpoint-every", type=int, default=50, help="steps between checkpoints")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name, value in {"processes of a node": PROCESSES_PER_NODE, "--heads": options.heads}.items():
        if value % options.tensor_parallel:
            sys.exit(f"train.py: --tensor-parallel {options.tensor_parallel} does not divide {name}, {value}")
    return options


def remember_notice(_signal: int, _frame: FrameType | None) -> None:
    global notice_received
    notice_received = True


def batch_of(step: int, data: Tensor, options: argparse.Namespace, data_rank: int) -> tuple[Tensor, Tensor]:
    """The sequences of a data-parallel rank in a step, and the byte that follows each of their bytes."""
    random = torch.Generator().manual_seed((options.seed * 1_000_003 + step) * 65_536 + data_rank)
    starts = torch.randint(len(data) - options.context, (options.batch,), generator=random)
    sequences = data[starts[:, None] + torch.arange(options.context + 1)].long()
    return sequences[:, :-1], sequences[:, 1:]


def state(model: Any, optimizer: Any, step: int) -> dict[str, Any]:
    """What a checkpoint stores: each process saves the parts that it has."""
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments, "step": step}


def place_of(step: int) -> Path:
    return CHECKPOINTS / f"step-{step:08d}"


def resume(model: Any, optimizer: Any, objects: dist.ProcessGroup) -> int:
    """Load the checkpoint that TRN_RESUME_FROM names, else the newest whole one. Returns its step, or 0."""
    named = os.environ.get("TRN_RESUME_FROM")
    place = named or max((file.parent for file in CHECKPOINTS.glob("step-*/.metadata")), default=None)
    if place is None:
        return 0
    loaded = state(model, optimizer, step=0)
    dcp.load(loaded, checkpoint_id=place, process_group=objects)
    set_state_dict(model, optimizer, model_state_dict=loaded["model"], optim_state_dict=loaded["optimizer"])
    return loaded["step"]


if __name__ == "__main__":
    main()
