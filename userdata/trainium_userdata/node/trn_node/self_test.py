"""The numeric self-test: every NeuronCore or GPU computes through the framework, and Python checks the result."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from trainium_wire.cache_place import NATIVE_SETTINGS, native_folders

from . import files
from .check import CONTAINER, Check
from .compute import MARK, MEMORY_MARK
from .job_user import delete_folder, give_to_job_user, verification_user
from .programs import ProgramRun, environment, run

CACHE = "var/cache/trn/self-test"
"""Separate from the cluster's compile cache."""
NAMED = 3
"""The maximum number of problems in a text. Messages of the runtime contain times and process IDs, so each core may
have a different one."""
MAX_LOST = 3
"""After this many second attempts without a result, the number of processes is not the cause."""
EXPECTED = "what the CPU computes, on {} {}s"
MEMORY_EXPECTED = "the numbers that were written, on {} {}s"
UNREAD = "has not read its device memory"
MODULES = {"torch_xla": "xla", "torch_neuronx": "native", "jax": "jax"}
"""The stacks by the module that identifies them in an image. PyTorch/XLA's images have torch_neuronx too."""
MARKS = (MARK, MEMORY_MARK)
CUDA = "cuda"
"""The stack of GPU images, whose environment has no version in its name."""


def framework_python(plan: dict[str, Any]) -> tuple[str, Path] | None:
    """The stack and the Python of the plan's first installed framework, in its newest version; None without one.

    In a container, the framework is that of this Python.
    """
    if plan.get("scope") == CONTAINER:
        stack = next((MODULES[module] for module in MODULES if find_spec(module)), None)
        return (stack, Path(sys.executable)) if stack else None
    for name, stack in plan["frameworks"].items():
        python = files.path(f"opt/{name}/bin/python")
        if stack == CUDA:
            return (stack, python) if python.exists() else None
        found = files.path("opt").glob(f"aws_neuronx_venv_{name}_*/bin/python")
        plain = [python for python in found if re.fullmatch(rf"aws_neuronx_venv_{name}_[\d_]+", _venv(python))]
        if plain:
            return stack, max(plain, key=lambda python: [int(part) for part in re.findall(r"\d+", _venv(python))])
    return None


def _venv(python: Path) -> str:
    """The name of an environment in /opt; the path of another Python."""
    folder = python.parent.parent
    return folder.name if folder.parent.name == "opt" else str(python)


def check_framework(plan: dict[str, Any]) -> Check:
    promised, found = plan.get("framework"), framework_python(plan)
    if found:
        return Check("framework", promised or "any", _venv(found[1]), True)
    if plan.get("scope") == CONTAINER:
        problem = f"the image has none of {', '.join(MODULES)} for {Path(sys.executable).name}"
        return Check("framework", "any", "none", False, problem)
    place = promised if CUDA in plan["frameworks"].values() else f"aws_neuronx_venv_{promised}_*"
    problem = f"no environment /opt/{place} exists"
    return Check("framework", promised or "any or none", "none", not promised, problem)


def check_cores(plan: dict[str, Any], cores: int) -> list[Check]:
    """Check the computation and the device memory of each core. Raises OSError if the cache has no folder."""
    unit = "GPU" if plan.get("gpus") else "core"
    expected, found = EXPECTED.format(cores, unit), framework_python(plan)
    if not found:
        none = f"no framework here: {'nccl-tests' if plan.get('gpus') else 'nccom-test'} computes instead"
        unread = Check("memory-test", MEMORY_EXPECTED.format(cores, unit), "not tested: no framework here", True)
        return [Check("self-test", expected, none, True), unread]
    stack, python = found
    folder = files.path(CACHE)
    # The processes import modules from there. On a Slurm node, jobs of the same user may have written some.
    delete_folder(folder)
    folder.mkdir(parents=True)
    give_to_job_user(folder)
    test = _test_with_jax if stack == "jax" else _test_with_pytorch
    ends = time.monotonic() + plan["self_test"]["all_seconds"]
    results = test(_Computation(plan, stack, python, ends), cores)
    return [_check_computation(results, stack, python, cores, unit), _check_memory(results, cores, unit)]


def _check_computation(results: list[_CoreResult], stack: str, python: Path, cores: int, unit: str) -> Check:
    expected = EXPECTED.format(cores, unit)
    cores_by_problem: dict[str, list[int]] = {}
    for core, result in enumerate(results):
        cores_by_problem.setdefault(result.wrong or result.error, []).append(core)
    right = len(cores_by_problem.pop("", []))
    wrong = [f"{_cores(cores_by_problem[problem], unit)} {problem}" for problem in list(cores_by_problem)[:NAMED]]
    if more := [core for problem in list(cores_by_problem)[NAMED:] for core in cores_by_problem[problem]]:
        wrong.append(f"{_cores(more, unit)} is wrong in other ways")
    if len(results) > cores:
        wrong.append(f"{stack} shows {len(results)} {unit}s, not {cores}")
    again = [core for core, result in enumerate(results) if result.again and result.right]
    summary = f"{right} of {cores} {unit}s, with {_venv(python)}"
    shown = [summary, *wrong, *([f"{_cores(again, unit)} at the second attempt"] if again else [])]
    wrong_numbers = any(result.wrong for result in results)
    return Check("self-test", expected, "; ".join(shown), not wrong, "; ".join(wrong), wrong_numbers=wrong_numbers)


def _check_memory(results: list[_CoreResult], cores: int, unit: str) -> Check:
    """Wrong numbers fail the node. A missing result is a warning, because the self-test decides on the computation."""
    problems: dict[str, list[int]] = {}
    for core, result in enumerate(results):
        problems.setdefault(result.memory, []).append(core)
    right = len(problems.pop("", []))
    wrong = [problem for problem in problems if not problem.startswith(UNREAD)]
    shown = [*wrong, *(problem for problem in problems if problem not in wrong)][:NAMED]
    problem = "; ".join(f"{_cores(problems[each], unit)} {each}" for each in shown)
    found = "; ".join(filter(None, (f"{right} of {cores} {unit}s", problem)))
    expected = MEMORY_EXPECTED.format(cores, unit)
    check = Check("memory-test", expected, found, not problems, problem, wrong_numbers=bool(wrong))
    return check if check.ok or wrong else check.warned()


class _CoreResult(NamedTuple):
    """The result of a core.

    Attributes:
        wrong: The problem with its numbers.
        error: Why it has no numbers.
        again: Whether this is the second attempt.
        memory: The problem with its device memory, or UNREAD and why.
    """

    wrong: str = ""
    error: str = ""
    again: bool = False
    memory: str = UNREAD

    @property
    def right(self) -> bool:
        return not (self.wrong or self.error)


class _Computation(NamedTuple):
    """Runs the computation in separate processes, until `ends` on the monotonic clock."""

    plan: dict[str, Any]
    stack: str
    python: Path
    ends: float

    def results(self, seconds: float, core: int | None = None) -> list[_CoreResult]:
        """The results of the cores that have one; if not all do, the last result says why."""
        seconds = min(seconds, self.ends - time.monotonic())
        if seconds <= 0:
            return [_CoreResult(error="was not tried: the self-test ran out of time")]
        ran = self._run(seconds, core)
        # The compiler prints dots without a line end.
        computed, read = (
            [_marked_value(line, mark) for line in ran.out.splitlines() if mark in line] for mark in MARKS
        )
        error = ran.error.replace(str(self.python), "the computation")
        unread = f"{UNREAD}: {error or 'the computation prints no result'}"
        read += [unread] * (len(computed) - len(read))
        found = [_CoreResult(wrong=wrong, memory=memory) for wrong, memory in zip(computed, read)]
        if error:
            late = f"does not end within {seconds:g} seconds"
            found.append(_CoreResult(error=late if error.endswith(late) else f"is not verified: {error}"))
        return found

    def _run(self, seconds: float, core: int | None) -> ProgramRun:
        lnc, folder = self.plan["logical_neuroncore_config"], str(files.path(CACHE))
        changes = {
            # As in the activated environment, whose compiler is next to its Python.
            "PATH": os.pathsep.join((str(self.python.parent), environment()["PATH"])),
            **compile_settings(folder),
            # The default is the same for all processes.
            "NEURON_RT_ROOT_COMM_ID": f"localhost:{self.plan['self_test']['first_port'] + (core or 0)}",
        }
        changes.update({"NEURON_LOGICAL_NC_CONFIG": str(lnc)} if lnc else {})
        visible = "CUDA_VISIBLE_DEVICES" if self.stack == CUDA else "NEURON_RT_VISIBLE_CORES"
        changes.update({visible: str(core)} if core is not None else {})
        # On standard input, because Python would search the script's folder for modules first.
        source = Path(__file__).with_name("compute.py").read_text()
        command = (str(self.python), "-", self.stack, str(self.plan["self_test"]["memory_blocks"]))
        user = verification_user(self.plan)
        return run(*command, seconds=seconds, changes=changes, stdin=source, folder=folder, user=user)


def compile_settings(folder: str) -> dict[str, str]:
    """Variables that make PyTorch of either stack compile into a folder."""
    return {"NEURON_COMPILE_CACHE_URL": folder, **native_folders(folder), **NATIVE_SETTINGS}


def _marked_value(line: str, mark: str) -> str:
    return str(json.JSONDecoder().raw_decode(line.partition(mark)[2])[0])


def _test_with_pytorch(computation: _Computation, cores: int) -> list[_CoreResult]:
    """A process for each core: the first one alone, because it compiles, then the others in parallel."""
    times = computation.plan["self_test"]

    def attempt(core: int) -> _CoreResult:
        results = computation.results(times["seconds"] if core else times["first_seconds"], core)
        return results[0] if results else _CoreResult(error="prints no result")

    results = _retried_alone([attempt(0)], attempt)
    with ThreadPoolExecutor(min(cores, os.cpu_count() or 1)) as pool:
        results += pool.map(attempt, range(1, cores))
    return _retried_alone(results, attempt)


def _retried_alone(results: list[_CoreResult], attempt: Callable[[int], _CoreResult]) -> list[_CoreResult]:
    """The results, with a second attempt for missing ones: too many processes may have run at once.

    There is no second attempt after wrong numbers from any core, or after MAX_LOST second attempts without a result.
    """
    if any(result.wrong for result in results):
        return results
    tried: list[_CoreResult] = []
    for core, result in enumerate(results):
        lost = sum(bool(other.again and other.error) for other in tried)
        due = result.error and not result.again and lost < MAX_LOST
        tried.append(attempt(core)._replace(again=True) if due else result)
    return tried


def _test_with_jax(computation: _Computation, cores: int) -> list[_CoreResult]:
    """One process computes on one core after another, and ends at the first core without a result."""
    times = computation.plan["self_test"]
    results = computation.results(times["first_seconds"] + times["seconds"])
    unfinished = 0 < len(results) <= cores and bool(results[-1].error)
    again = unfinished and not any(result.wrong for result in results)
    if again:
        results = computation.results(times["first_seconds"] + times["seconds"])
    if len(results) > cores and results[-1].error:
        # It failed after the last core.
        results.pop()
    missing = _CoreResult(error="was not reached" if results and results[-1].error else "is not shown by JAX")
    return [result._replace(again=again) for result in results] + [missing] * (cores - len(results))


def _cores(numbers: list[int], unit: str) -> str:
    """The cores with ranges, such as `each of cores 0-3, 7`."""
    if len(numbers) == 1:
        return f"{unit} {numbers[0]}"
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return f"each of {unit}s {', '.join('-'.join(map(str, ends)) for ends in ranges)}"
