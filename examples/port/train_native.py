"""Trains a classifier of bytes. docs/guides/port-a-script.md describes its port from GPUs to Trainium."""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CONTEXT = 16
TEXT = Path(__file__).resolve().parents[1] / "lm" / "persuasion.txt"
RANK = int(os.environ.get("RANK", "0"))
PROCESSES = int(os.environ.get("WORLD_SIZE", "1"))


def read_examples(file: str, max_bytes: int) -> TensorDataset:
    """Examples from a file: CONTEXT bytes, and the byte that follows them."""
    text = torch.tensor(list(Path(file).read_bytes()[:max_bytes]))
    windows = text.unfold(0, CONTEXT + 1, 1)
    return TensorDataset(windows[:, :-1], windows[:, -1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=str(TEXT))
    parser.add_argument("--bytes", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=256)
    options = parser.parse_args()

    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    if PROCESSES > 1:
        dist.init_process_group("neuron" if device.type == "neuron" else "gloo")
    torch.manual_seed(1)

    model = nn.Sequential(
        nn.Embedding(256, 32), nn.Flatten(), nn.Linear(CONTEXT * 32, 256), nn.GELU(), nn.Linear(256, 256)
    ).to(device)
    if PROCESSES > 1:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    data = read_examples(options.data, options.bytes)
    sampler = DistributedSampler(data) if PROCESSES > 1 else None
    loader = DataLoader(
        data, batch_size=options.batch, shuffle=sampler is None, sampler=sampler, drop_last=True, num_workers=2
    )
    right = torch.zeros((), dtype=torch.float32, device=device)
    for step, (before, byte) in enumerate(loader, start=1):
        before, byte = before.to(device), byte.to(device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores = model(before)
            loss = nn.functional.cross_entropy(scores, byte)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (scores.argmax(dim=-1) == byte).sum()
        if step % 20 == 0:
            value = loss.item()
            if RANK == 0:
                print(f"TRN step={step} loss={value:.4f}")
    if PROCESSES > 1:
        dist.all_reduce(right)
    if RANK == 0:
        print(f"right: {right.item():.0f} of {len(loader) * options.batch * PROCESSES}")


if __name__ == "__main__":
    main()
