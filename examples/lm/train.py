"""Trains a small language model on the bytes of a novel, data-parallel, and resumes from its newest checkpoint.

    python examples/lm/train.py                         one process
    torchrun --nproc_per_node=2 examples/lm/train.py    two processes on this machine
    trn run train.py --source examples/lm               one process per logical NeuronCore, on every node of the cluster

docs/guides/example-lm.md explains the lines that differ from CUDA.
"""

import argparse
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import torch
import torch.distributed as dist
import torch.distributed.nn  # If imported after init_process_group, its default arguments would keep the group alive.
from model import LanguageModel
from torch import Tensor

try:
    import torch_xla
    import torch_xla.distributed.xla_backend  # registers the backend "xla"
except ImportError:
    torch_xla = None

BACKENDS = {"neuron": "neuron", "xla": "xla", "cpu": "gloo"}
"""Backends of torch.distributed by type of device."""

RANK = int(os.environ.get("RANK", "0"))  # as torchrun sets them
PROCESSES = int(os.environ.get("WORLD_SIZE", "1"))

COLLECTING = os.environ.get("NEURON_EXTRACT_GRAPHS_ONLY") == "1"
"""Whether neuron_parallel_compile collects graphs. All results are then zeros, and must not be compared or saved."""

CHECKPOINT_NAME = "step-{:08d}"
STATE_FILE = "state.pt"

notice_received = False


def main() -> None:
    options = read_options()
    signal.signal(signal.SIGUSR1, remember_notice)
    kind = find_kind_of_device(options.device)
    if PROCESSES > 1:
        # XLA's runtime gets its rank here, before it creates the device. With xla://, torch.distributed uses that rank.
        dist.init_process_group(BACKENDS[kind], init_method="xla://" if kind == "xla" else None)
    device = torch_xla.device() if kind == "xla" else torch.device(kind)

    data = read_data(options)
    torch.manual_seed(options.seed)  # the same initial weights in every process
    shape = {name: getattr(options, name) for name in ("context", "width", "layers", "heads")}
    model = LanguageModel(**shape).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    settings = {**shape, "batch": options.batch * PROCESSES}
    settings |= {"seed": options.seed, "learning_rate": options.learning_rate}
    first = resume(options, settings, model, optimizer)
    check_processes(first, device)
    if RANK == 0:
        parameters = sum(parameter.numel() for parameter in model.parameters())
        print(f"{device.type}, processes: {PROCESSES}, parameters: {parameters:,}, after step {first}", flush=True)

    stopping = False
    reported, report_time = first, time.monotonic()
    for step in range(first + 1, options.steps + 1):
        inputs, targets = (part.to(device) for part in batch_of(step, data, options))
        with torch.autocast(device.type, torch.bfloat16, enabled=options.precision == "bfloat16"):
            logits = model(inputs)
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        status = torch.stack([loss.detach(), torch.tensor(float(notice_received)).to(device)])
        average([status, *(parameter.grad for parameter in model.parameters())])
        optimizer.step()
        if device.type == "xla":
            torch_xla.sync()  # compiles the recorded graph if it is new, and runs it

        if step % options.report_every == 0 or step in (first + 1, options.steps):
            mean_loss, noticed = status.tolist()  # waits for the device
            stopping = noticed > 0  # if one process got the signal, all stop after the same step
            if RANK == 0:
                tokens = (step - reported) * options.context * settings["batch"]
                now = time.monotonic()
                seconds = now - report_time
                rate = tokens / seconds
                print(
                    f"TRN step={step} loss={mean_loss:.6f} tokens={tokens} seconds={seconds:.6f} "
                    f"tokens_per_second={rate:.0f}",
                    flush=True,
                )
                reported, report_time = step, now
        is_due = step % options.checkpoint_every == 0 or step == options.steps or stopping
        if RANK == 0 and is_due and not COLLECTING:
            save_checkpoint(options.checkpoints, step, settings, model, optimizer)
        if stopping and step < options.steps:
            if RANK == 0:
                print(f"stopped by SIGUSR1, saved after step {step}", flush=True)
            break
    else:
        if RANK == 0 and not COLLECTING:
            options.outputs.mkdir(parents=True, exist_ok=True)
            torch.save({"shape": shape, "model": on_cpu(model.state_dict())}, options.outputs / "model.pt")
    if PROCESSES > 1:
        if dist.get_backend() == "gloo":
            dist.barrier()  # Meanwhile threads of gloo release their tensors, without which the next line can block.
        dist.destroy_process_group()


def read_options() -> argparse.Namespace:
    """Parse the options. Default folders: those of a job on a cluster or in SageMaker, else below the working one."""

    def folder(*variables: str, default: str) -> Path:
        return Path(next((os.environ[name] for name in variables if name in os.environ), default))

    parser = argparse.ArgumentParser(description="Train a small language model.")
    number = {"type": positive, "metavar": "N"}
    parser.add_argument("--steps", **number, default=200, help="in total, including those before a resume")
    parser.add_argument("--batch", **number, default=16, help="sequences in a step of one process")
    parser.add_argument("--context", **number, default=128, help="bytes in a sequence")
    parser.add_argument("--width", **number, default=128)
    parser.add_argument("--layers", **number, default=4)
    parser.add_argument("--heads", **number, default=4)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=["auto", *BACKENDS], default="auto")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--report-every", **number, default=1, help="steps between progress lines")
    parser.add_argument("--checkpoint-every", **number, default=50, help="steps between checkpoints")
    parser.add_argument("--data", type=Path, default=Path(__file__).with_name("persuasion.txt"))
    parser.add_argument("--checkpoints", type=Path, default=folder("TRN_CHECKPOINT_DIR", default="checkpoints"))
    parser.add_argument("--outputs", type=Path, default=folder("TRN_OUTPUT_DIR", "SM_MODEL_DIR", default="outputs"))
    options = parser.parse_args()
    if options.width % options.heads:
        parser.error(f"--width {options.width} is not a multiple of --heads {options.heads}")
    return options


def refuse(reason: str) -> NoReturn:
    """Exit without a traceback. Ends the process group first, because threads of gloo may abort Python at exit."""
    if dist.is_initialized():
        dist.destroy_process_group()
    sys.exit(f"train.py: {reason}")


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def remember_notice(_signal: int, _frame: FrameType | None) -> None:
    global notice_received
    notice_received = True


def find_kind_of_device(requested: str) -> str:
    """The type of device, without an index: the runtime assigns one logical NeuronCore to each process."""
    accelerator = torch.accelerator.current_accelerator()
    is_native = accelerator is not None and accelerator.type == "neuron"
    available = {"neuron": is_native, "xla": torch_xla is not None, "cpu": True}
    if requested == "auto":
        requested = next(kind for kind, is_available in available.items() if is_available)
        if requested == "cpu" and Path("/dev/neuron0").exists() and RANK == 0:
            print("on the CPU, because this PyTorch does not support the Neuron devices of the machine", flush=True)
    if not available[requested]:
        refuse(f"PyTorch in this Python has no device {requested}")
    return requested


def read_data(options: argparse.Namespace) -> Tensor:
    try:
        content = options.data.read_bytes()
    except OSError as error:
        refuse(f"--data {options.data} cannot be read: {error.strerror}")
    if len(content) <= options.context:
        refuse(f"--data {options.data} has {len(content)} bytes, --context {options.context} needs more")
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def batch_of(step: int, data: Tensor, options: argparse.Namespace) -> tuple[Tensor, Tensor]:
    """This process's part of a step's sequences, and the byte that follows each of their bytes.

    Seed and step alone determine the sequences of a step, for any number of processes, so checkpoints do not store
    them. All sequences have the same length, so that every step has the same shapes.
    """
    random = torch.Generator().manual_seed(options.seed * 1_000_003 + step)
    starts = torch.randint(len(data) - options.context, (options.batch * PROCESSES,), generator=random)
    mine = starts[RANK * options.batch :][: options.batch]
    sequences = data[mine[:, None] + torch.arange(options.context + 1)].long()
    return sequences[:, :-1], sequences[:, 1:]


def average(tensors: list[Tensor]) -> None:
    """Replace each tensor by its mean over all processes, with one all-reduce."""
    if PROCESSES == 1:
        return
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    dist.all_reduce(flat)
    flat /= PROCESSES
    for tensor, mean in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(mean.view_as(tensor))


def save_checkpoint(folder: Path, step: int, settings: dict[str, float], model: Any, optimizer: Any) -> None:
    """Write a checkpoint into a temporary folder, and rename the folder when it is complete and on the disk."""
    place = folder / CHECKPOINT_NAME.format(step)
    if place.exists():
        return
    partial = folder / f".{place.name}.tmp"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    state = {"step": step, "settings": settings, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    with (partial / STATE_FILE).open("wb") as file:
        torch.save(on_cpu(state), file)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(partial)
    partial.rename(place)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Flush a folder to the disk, with the names of new files in it."""
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def on_cpu(state: Any) -> Any:
    if isinstance(state, dict):
        return {name: on_cpu(value) for name, value in state.items()}
    if isinstance(state, list):
        return [on_cpu(value) for value in state]
    return state.cpu() if isinstance(state, Tensor) else state


def resume(options: argparse.Namespace, settings: dict[str, float], model: Any, optimizer: Any) -> int:
    """Load the checkpoint that TRN_RESUME_FROM names, else the newest. Returns its step, or 0 without a checkpoint."""
    named = os.environ.get("TRN_RESUME_FROM")
    place = Path(named) if named else max(options.checkpoints.glob("step-*"), default=None)
    if place is None:
        return 0
    state = torch.load(place / STATE_FILE, map_location="cpu", weights_only=True)
    for name, value in settings.items():
        if state["settings"][name] != value:
            refuse(
                f"{place.name} was written with {name} {state['settings'][name]}, this run has {name} {value}"
                + (" (--batch times the number of processes)" if name == "batch" else "")
            )
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def check_processes(step: int, device: torch.device) -> None:
    """Refuse to train unless all processes take part, from the same step. Averaging itself would not raise an error."""
    if PROCESSES == 1:
        return
    present = torch.ones(1).to(device)
    dist.all_reduce(present)
    if present.item() != PROCESSES and not COLLECTING:
        refuse(f"{present.item():.0f} of {PROCESSES} processes take part in an all-reduce on {device.type}")
    extremes = torch.tensor([step, -step], dtype=torch.float32).to(device)
    dist.all_reduce(extremes, op=dist.ReduceOp.MAX)
    latest, earliest = (abs(int(extreme)) for extreme in extremes.tolist())
    if latest != earliest:
        refuse(f"one process resumes after step {latest}, another after step {earliest}")
    if device.type == "xla":
        torch_xla.sync()  # Otherwise the graph of the first step would include these all-reduces.


if __name__ == "__main__":
    main()
