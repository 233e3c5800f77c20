"""The numeric self-test: every NeuronCore computes, through the framework that is there, what Python computes too."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from . import files
from .check import Check
from .compute import MARK
from .programs import environment, run

FIRST_SECONDS = 900
"""The first core's process also compiles, which on a small host takes minutes, and is the first to read the framework
from a volume that EBS fills from its snapshot meanwhile."""
SECONDS = 180
"""The others find what was compiled; what takes long is to load the framework many times at once."""
CACHE = "var/cache/trn/self-test"
"""Apart from the cluster's compile cache."""
FRAMEWORKS = ("pytorch", "jax")
NAMED = 3
"""At most so many different sentences: the runtime's own hold times and process ids, so that each core has another."""
EXPECTED = "what the CPU computes, on {} cores"


def framework_python(plan: dict[str, Any]) -> tuple[str, Path] | None:
    """The framework and its Python: the promised one, or whichever is there; of several versions the newest."""
    promised = plan.get("framework")
    for name in [promised] if promised else FRAMEWORKS:
        found = files.path("opt").glob(f"aws_neuronx_venv_{name}_*/bin/python")
        plain = [python for python in found if re.fullmatch(rf"aws_neuronx_venv_{name}_[\d_]+", _venv(python))]
        if plain:
            return name, max(plain, key=lambda python: [int(part) for part in re.findall(r"\d+", _venv(python))])
    return None


def _venv(python: Path) -> str:
    return python.parent.parent.name


def check_framework(plan: dict[str, Any]) -> Check:
    promised, found = plan.get("framework"), framework_python(plan)
    if found:
        return Check("framework", promised or "any", _venv(found[1]), True)
    complaint = f"no environment /opt/aws_neuronx_venv_{promised}_* is there"
    return Check("framework", promised or "any or none", "none", not promised, complaint)


def check_cores(plan: dict[str, Any], cores: int) -> Check:
    """Raises OSError when the folder of the cache cannot be made."""
    expected, found = EXPECTED.format(cores), framework_python(plan)
    if not found:
        return Check("self-test", expected, "no framework here: nccom-test computes instead", True)
    framework, python = found
    files.path(CACHE).mkdir(parents=True, exist_ok=True)
    verdicts = _with_jax(plan, python, cores) if framework == "jax" else _with_pytorch(plan, python, cores)
    places: dict[str, list[int]] = {}
    for core, verdict in enumerate(verdicts):
        places.setdefault(verdict, []).append(core)
    right = len(places.pop("", []))
    wrong = [f"{_cores(places[verdict])} {verdict}" for verdict in list(places)[:NAMED]]
    if more := [core for verdict in list(places)[NAMED:] for core in places[verdict]]:
        wrong.append(f"{_cores(more)} {'is' if len(more) == 1 else 'are'} wrong in other ways")
    if len(verdicts) > cores:
        wrong.append(f"{framework} shows {len(verdicts)} cores, not {cores}")
    summary = f"{right} of {cores} cores, with {_venv(python)}"
    return Check("self-test", expected, "; ".join([summary, *wrong]), not wrong, "; ".join(wrong))


def _with_pytorch(plan: dict[str, Any], python: Path, cores: int) -> list[str]:
    def verdict(core: int) -> str:
        found, trouble = _compute(plan, python, "pytorch", SECONDS if core else FIRST_SECONDS, core=core)
        return found[0] if found else trouble or "prints no answer"

    first = verdict(0)
    with ThreadPoolExecutor(min(cores, os.cpu_count() or 1)) as pool:
        return [first, *pool.map(verdict, range(1, cores))]


def _with_jax(plan: dict[str, Any], python: Path, cores: int) -> list[str]:
    """One process computes on the cores one after the other; what ends it, ends it at the first without a verdict."""
    found, trouble = _compute(plan, python, "jax", FIRST_SECONDS + SECONDS)
    missing = [trouble, *["was not reached"] * cores] if trouble else ["is not shown by JAX"] * cores
    return (found + missing[: cores - len(found)]) if len(found) < cores else found


def _compute(
    plan: dict[str, Any], python: Path, framework: str, seconds: int, core: int | None = None
) -> tuple[list[str], str]:
    """The verdicts on the cores that came to one, and what went wrong if not all did."""
    lnc, folder = plan["logical_neuroncore_config"], str(files.path(CACHE))
    # As in the activated environment, whose compiler is a program beside its Python.
    search = os.pathsep.join((str(python.parent), environment()["PATH"]))
    changes = {"NEURON_COMPILE_CACHE_URL": folder, "PATH": search}
    changes.update({"NEURON_LOGICAL_NC_CONFIG": str(lnc)} if lnc else {})
    changes.update({"NEURON_RT_VISIBLE_CORES": str(core)} if core is not None else {})
    # On standard input: a script's own folder would be searched for modules first.
    source = Path(__file__).with_name("compute.py").read_text()
    ran = run(str(python), "-", framework, seconds=seconds, changes=changes, stdin=source, folder=folder)
    # The compiler's dots come without an end of their line.
    lines = [line.partition(MARK)[2] for line in ran.out.splitlines() if MARK in line]
    trouble = ran.trouble.replace(str(python), "the computation")
    if trouble:
        late = f"gives no answer within {seconds} seconds"
        trouble = late if trouble.endswith(late) else f"is not proven: {trouble}"
    return [str(json.JSONDecoder().raw_decode(line)[0]) for line in lines], trouble


def _cores(numbers: list[int]) -> str:
    """The numbers with their ranges drawn together: 0-3, 7."""
    if len(numbers) == 1:
        return f"core {numbers[0]}"
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return f"each of cores {', '.join('-'.join(map(str, ends)) for ends in ranges)}"
