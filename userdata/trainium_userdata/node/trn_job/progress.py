"""Reads progress lines such as `TRN step=120 loss=2.31 tokens=8192`, and compilations, from a job's output."""

from __future__ import annotations

import collections
import re
import time
from collections.abc import Callable
from typing import Any

from trainium_wire.formats import now_text
from trainium_wire.job_output import CACHED, COMPILED, PROGRESS, number, progress_pairs

WINDOW = 50
"""Rates are averages over at most this many intervals between progress lines."""
LONGEST_TEXT = 200
MAX_KEYS = 20
"""Further keys of progress lines are ignored."""


class RankProgress:
    """The progress of the first rank that prints any, because the others print the same steps."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rank: int | None = None
        self._steps: collections.deque[tuple[float, int, float]] = collections.deque(maxlen=WINDOW + 1)
        self._tokens = 0.0
        self._rates: dict[str, Any] = {}
        self.first: float | None = None
        """When the first progress line was read, by the clock."""

    def feed(self, rank: int | None, line: str) -> None:
        found = PROGRESS.search(line)
        if not found or (self._rates and rank != self._rank):
            return
        values = progress_pairs(found[1])
        at = self._clock()
        if self.first is None:
            self.first = at
        self._rank = rank
        step, tokens = number(values.pop("step", "")), number(values.pop("tokens", ""))
        self._tokens += tokens or 0
        if step is not None:
            if self._steps and step < self._steps[-1][1]:
                self._steps.clear()
            self._steps.append((at, int(step), self._tokens))
            self._rates["step"] = int(step)
        loss = number(values.get("loss", ""))
        if loss is not None:
            self._rates["loss"] = loss
            del values["loss"]
        for name, value in values.items():
            if name in self._rates or len(self._rates) < MAX_KEYS:
                self._rates[name] = value[:LONGEST_TEXT]
        self._rates["last_at"] = now_text()

    def as_record(self) -> dict[str, Any]:
        """The values that were printed last, and when; empty before the first progress line.

        After two lines with steps, `steps_per_second` is added, and `tokens_per_second` if tokens were printed.
        """
        rates: dict[str, float] = {}
        if len(self._steps) > 1:
            (first_at, first_step, first_tokens), (last_at, last_step, last_tokens) = self._steps[0], self._steps[-1]
            if last_at > first_at:
                rates["steps_per_second"] = round((last_step - first_step) / (last_at - first_at), 4)
                if last_tokens > first_tokens:
                    rates["tokens_per_second"] = round((last_tokens - first_tokens) / (last_at - first_at), 1)
        return {**self._rates, **rates}


ERROR = re.compile(r"\bNCC_[A-Z]{4}\d{3}\b")
RECOMPILE = re.compile(r"\[__recompiles\]\s+- \d+/\d+: (.+)")
ANALYSIS = "Compilation Analysis:"
"""Output of torch with TORCH_LOGS=recompiles, and of PyTorch/XLA with PT_XLA_DEBUG_LEVEL=1: the line after `Compilation
Cause` is the reason. Source: PyTorch's and PyTorch/XLA's guides on troubleshooting.
"""


class Compiling:
    """The compilations in the output. Call `feed` for every line.

    Attributes:
        reasons: Number of compilations by reason.
        errors: Number of lines by the compiler's error code.
    """

    def __init__(self) -> None:
        self._counts: collections.Counter[str] = collections.Counter()
        self.reasons: collections.Counter[str] = collections.Counter()
        self.errors: collections.Counter[str] = collections.Counter()
        self._ranks_before_reason: set[int | None] = set()

    def feed(self, line: str, rank: int | None = None) -> None:
        self._feed_reasons(line, rank)
        self.errors.update(set(ERROR.findall(line)))
        for sign in (*CACHED, *COMPILED):
            if sign in line:
                self._counts[sign] += 1

    def _feed_reasons(self, line: str, rank: int | None) -> None:
        recompiled = RECOMPILE.search(line)
        if recompiled:
            self.reasons[recompiled[1].strip()[:LONGEST_TEXT]] += 1
        _, found, analysis = line.partition(ANALYSIS)
        if found and analysis.strip() == "Compilation Cause":
            self._ranks_before_reason.add(rank)
        elif found and rank in self._ranks_before_reason:
            self._ranks_before_reason.remove(rank)
            self.reasons[analysis.strip()[:LONGEST_TEXT]] += 1

    def counts(self) -> dict[str, int]:
        """The number of compiled and of cached graphs; empty if unknown."""
        found = {
            "compiled": max(self._counts[sign] for sign in COMPILED),
            "cached": max(self._counts[sign] for sign in CACHED),
        }
        return found if any(found.values()) else {}
