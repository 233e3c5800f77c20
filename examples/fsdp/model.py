"""A decoder-only transformer over bytes, and how its layers are split over processes."""

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

BYTES = 256


class Transformer(nn.Module):
    def __init__(self, *, context: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(BYTES, width)
        self.blocks = nn.ModuleList(Block(context, width, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.logits = nn.Linear(width, BYTES, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.logits(self.norm(x))


class Block(nn.Module):
    def __init__(self, context: int, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(width)
        self.attention = Attention(context, width, heads)
        self.feed_forward_norm = nn.RMSNorm(width)
        self.feed_forward = FeedForward(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


class Attention(nn.Module):
    def __init__(self, context: int, width: int, heads: int) -> None:
        super().__init__()
        self.head_width = width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        steps = 10_000.0 ** (-torch.arange(0, self.head_width, 2) / self.head_width)
        angles = torch.outer(torch.arange(context), steps).repeat(1, 2)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        # The number of heads is that of this process.
        query, key, value = (
            part(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        attended = nn.functional.scaled_dot_product_attention(
            self.rotated(query), self.rotated(key), value, is_causal=True
        )
        return self.output(attended.transpose(1, 2).flatten(2))

    def rotated(self, x: Tensor) -> Tensor:
        """Rotary position embedding."""
        first, second = x.chunk(2, dim=-1)
        return x * self.cosine + torch.cat([-second, first], dim=-1) * self.sine


class FeedForward(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 3 * width, bias=False)
        self.up = nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


def split(model: Transformer, mesh: DeviceMesh) -> None:
    """Split each layer over the mesh's dimension "tensor", and shard what is left over its dimension "data"."""
    tensor, data = mesh["tensor"], mesh["data"]
    ends = {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "logits": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    whole_sequence = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
    layers = {
        "attention_norm": SequenceParallel(),
        "attention": whole_sequence,
        "attention.query": ColwiseParallel(),
        "attention.key": ColwiseParallel(),
        "attention.value": ColwiseParallel(),
        "attention.output": RowwiseParallel(output_layouts=Shard(1)),
        "feed_forward_norm": SequenceParallel(),
        "feed_forward": whole_sequence,
        "feed_forward.gate": ColwiseParallel(),
        "feed_forward.up": ColwiseParallel(),
        "feed_forward.down": RowwiseParallel(output_layouts=Shard(1)),
    }
    parallelize_module(model, tensor, ends)
    for block in model.blocks:
        parallelize_module(block, tensor, layers)
        fully_shard(block, mesh=data)
    fully_shard(model, mesh=data)
