"""Measures the time of `trn assess` relative to `ast.parse` of the same files, and its memory."""

import ast
import os
import resource
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from tools.demo.private_aws import PrivateAws
from trainium_core.assess.assessment import assess

RUNS = 3


def assess_speed(aws: PrivateAws) -> Iterator[tuple[str, str]]:
    """Measure on moto's code, once without and once with the word `torch` in each file, which enables all rules."""
    plain, with_torch = aws.folder / "plain", aws.folder / "torch"
    spec = find_spec("moto")
    assert spec is not None
    assert spec.origin is not None
    files = sorted(Path(spec.origin).parent.rglob("*.py"))
    lines = 0
    for number, file in enumerate(files):
        text = file.read_text()
        lines += text.count("\n")
        for folder, head in ((plain, "# nothing\n"), (with_torch, "# torch\n")):
            copied = folder / f"part{number % 16}" / f"m{number}.py"
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_text(head + text)
    # The maximum memory of children is that of all children so far, so the process that measures must be new.
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        parsed, no_rule, all_rules, memory = fresh.submit(_measured, plain, with_torch).result()
    yield (
        f"trn assess of {lines:,} lines, and ast.parse of them, in seconds of all processors",
        f"{all_rules:.1f} s if each file mentions torch, {no_rule:.1f} s if none does, ast.parse {parsed:.1f} s: "
        f"{all_rules / parsed:.2f} and {no_rule / parsed:.2f} times; at most {memory} MiB in a process",
    )


def _measured(plain: Path, with_torch: Path) -> tuple[float, float, float, int]:
    """Medians of the three times in seconds, and the maximum memory of a process in MiB."""
    copies = sorted(plain.rglob("*.py"))
    rounds = [(_parsed(copies), _assessed(plain), _assessed(with_torch)) for _ in range(RUNS)]
    parsed, no_rule, all_rules = (median(times) for times in zip(*rounds, strict=True))
    return parsed, no_rule, all_rules, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024


def _parsed(files: Sequence[Path]) -> float:
    started = _processor_seconds()
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        list(pool.map(_parse, files, chunksize=64))
    return _processor_seconds() - started


def _parse(file: Path) -> None:
    ast.parse(file.read_bytes())


def _assessed(folder: Path) -> float:
    started = _processor_seconds()
    assess([folder])
    return _processor_seconds() - started


def _processor_seconds() -> float:
    """CPU time of this process and of its finished children; other load on the machine does not count."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
