"""Whether a start compiled its graphs or found them in the cache, by what Neuron's tools print."""

from __future__ import annotations

import collections

CACHED = ("Using a cached neff at",)
COMPILED = ("Compiler status PASS", "Compilation Successfully Completed")
"""Of libneuronxla and neuronx-cc, which may print both for one graph. Source: the logs in the tutorials of the Neuron
documentation, 2.0 to 2.28. TorchNeuron is not known to print either."""


class Compiling:
    """Is fed with every line of the output."""

    def __init__(self) -> None:
        self._counts: collections.Counter[str] = collections.Counter()

    def feed(self, line: str) -> None:
        for sign in (*CACHED, *COMPILED):
            if sign in line:
                self._counts[sign] += 1

    def counts(self) -> dict[str, int]:
        """How many graphs were compiled, and how many found; empty while no line has told."""
        found = {
            "compiled": max(self._counts[sign] for sign in COMPILED),
            "cached": max(self._counts[sign] for sign in CACHED),
        }
        return found if any(found.values()) else {}
