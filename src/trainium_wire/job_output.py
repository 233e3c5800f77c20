"""Lines of a job's output that nodes and the command line read."""

from __future__ import annotations

import re

PROGRESS = re.compile(r"(?:^|[\s.])TRN((?:\s+[A-Za-z][\w.-]*=\S*)+)\s*$")
"""A progress line such as `TRN step=120 loss=2.31 tokens=8192`. Its group 1 is what `pairs_of` takes."""

CACHED = ("Using a cached neff at",)
COMPILED = ("Compiler status PASS", "Compilation Successfully Completed")
"""Lines of libneuronxla and neuronx-cc, which may print both for one graph. Source: the logs in the tutorials of the
Neuron documentation, 2.0 to 2.28. TorchNeuron is not known to print either."""


def pairs_of(given: str) -> dict[str, str]:
    """The keys and values of a progress line."""
    return dict(pair.split("=", 1) for pair in given.split())


def number(text: str) -> float | None:
    """The number; None if invalid or not finite, which JSON does not support."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if found - found == 0 else None
