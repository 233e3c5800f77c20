"""A small language model over bytes: a decoder-only transformer, in plain PyTorch."""

import torch
from torch import Tensor, nn

BYTES = 256
"""The vocabulary: every byte is a token, so that no tokenizer is needed."""


class LanguageModel(nn.Module):
    """Computes the logits of the next byte from the bytes so far.

    Takes byte values of shape [sequences, context], and returns logits of shape [sequences, context, BYTES].
    """

    def __init__(self, *, context: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.byte = nn.Embedding(BYTES, width)
        self.position = nn.Parameter(torch.randn(context, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(context, width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.logits = nn.Linear(width, BYTES, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.logits(self.norm(self.blocks(self.byte(tokens) + self.position)))


class Block(nn.Module):
    def __init__(self, context: int, width: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(context, width, heads)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.feed_forward(self.norms[1](x))


class Attention(nn.Module):
    """Causal self-attention from basic operations, without a kernel that only some devices have."""

    def __init__(self, context: int, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        # The mask has a fixed size and does not depend on the data, so that every step has the same graph.
        self.register_buffer("later", torch.ones(context, context).triu(1).bool(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        sequences, context, width = x.shape
        split = self.inputs(x).view(sequences, context, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5
        weights = scores.masked_fill(self.later, float("-inf")).softmax(-1)
        return self.output((weights @ value).transpose(1, 2).reshape(sequences, context, width))
