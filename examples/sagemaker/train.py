"""A small training for `trn sagemaker run`: learns y = 3x - 1, keeps checkpoints, and goes on where it was stopped.

Runs under torchrun: on Trainium with the XLA backend of torch-neuronx, elsewhere on CPUs with gloo.

    trn sagemaker run examples/sagemaker/train.py -- --epochs 200
"""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist

try:
    import torch_xla.core.xla_model as xla
    import torch_xla.distributed.xla_backend  # noqa: F401  makes the backend "xla" known
except ImportError:
    xla = None

SLOPE, OFFSET = 3.0, -1.0


def main() -> None:
    options = read_options()
    dist.init_process_group("xla" if xla else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = xla.xla_device() if xla else torch.device("cpu")
    torch.manual_seed(rank)
    model = torch.nn.Linear(1, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.learning_rate)
    first = resume(model)
    for epoch in range(first, options.epochs):
        inputs = torch.rand(64, 1, device=device) * 2 - 1
        loss = torch.nn.functional.mse_loss(model(inputs), SLOPE * inputs + OFFSET)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, world)
        optimizer.step()
        if xla:
            xla.mark_step()
        if rank == 0 and (epoch + 1) % options.report_every == 0:
            print(f"epoch {epoch + 1} of {options.epochs}: loss {loss.item():.6f}, {world} processes", flush=True)
            save(model, folder("TRN_CHECKPOINTS") / "last.pt", epoch + 1)
    if rank == 0:
        save(model, folder("SM_MODEL_DIR") / "model.pt", options.epochs)
        learned = model.weight.item(), model.bias.item()
        print(f"learned slope {learned[0]:.3f} and offset {learned[1]:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--report-every", type=int, default=20)
    return parser.parse_args()


def average_gradients(model: torch.nn.Module, world: int) -> None:
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= world


def folder(variable: str) -> Path:
    """A folder of the container that a variable names; SageMaker copies it to S3."""
    found = Path(os.environ.get(variable, "."))
    found.mkdir(parents=True, exist_ok=True)
    return found


def resume(model: torch.nn.Module) -> int:
    """The epoch to begin with; every process reads the same checkpoint, or begins with the weights of the first."""
    kept = folder("TRN_CHECKPOINTS") / "last.pt"
    if kept.exists():
        state = torch.load(kept, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        print(f"goes on after epoch {state['epoch']}", flush=True)
        return state["epoch"]
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    return 0


def save(model: torch.nn.Module, file: Path, epoch: int) -> None:
    state = {"model": {name: value.cpu() for name, value in model.state_dict().items()}, "epoch": epoch}
    partial = file.with_suffix(".partial")
    torch.save(state, partial)
    partial.replace(file)  # a job that is stopped meanwhile leaves the checkpoint before whole


if __name__ == "__main__":
    main()
