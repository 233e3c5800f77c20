"""Lines of a job's output that nodes and the command line read."""

from __future__ import annotations

import math
import re

PROGRESS = re.compile(r"(?:^|[\s.])TRN((?:\s+[A-Za-z][\w.-]*=\S*)+)\s*$")
"""A progress line such as `TRN step=120 loss=2.31 tokens=8192`. `progress_pairs` parses its group 1."""

CACHED = ("Using a cached neff at",)
COMPILED = ("Compiler status PASS", "Compilation Successfully Completed")
"""Lines of libneuronxla and neuronx-cc. One compilation may print both lines of COMPILED. Source: the logs in the
tutorials of the Neuron documentation, 2.0 to 2.28. TorchNeuron is not known to print any of these lines."""


def progress_pairs(text: str) -> dict[str, str]:
    """The keys and values of a progress line."""
    return dict(pair.split("=", 1) for pair in text.split())


def number(text: str) -> float | None:
    """The number; None if invalid or not finite, which JSON does not support."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
