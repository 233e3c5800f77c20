"""The numeric self-test: every NeuronCore computes, through the framework that is there, what Python computes too."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from . import files
from .check import Check
from .compute import MARK, MEMORY_MARK
from .programs import Run, environment, run

CACHE = "var/cache/trn/self-test"
"""Apart from the cluster's compile cache."""
NAMED = 3
"""At most so many different sentences: the runtime's own hold times and process ids, so that each core has another."""
LOST = 3
"""What keeps so many cores, one after the other, from an answer is not that many processes run at once."""
EXPECTED = "what the CPU computes, on {} cores"
MEMORY_EXPECTED = "what was written there, on {} cores"
UNREAD = "has not read its device memory"
MARKS = (MARK, MEMORY_MARK)


def framework_python(plan: dict[str, Any]) -> tuple[str, Path] | None:
    """The framework's stack and its Python: the promised one, or the first that is there; the newest version of it."""
    for name, stack in plan["frameworks"].items():
        found = files.path("opt").glob(f"aws_neuronx_venv_{name}_*/bin/python")
        plain = [python for python in found if re.fullmatch(rf"aws_neuronx_venv_{name}_[\d_]+", _venv(python))]
        if plain:
            return stack, max(plain, key=lambda python: [int(part) for part in re.findall(r"\d+", _venv(python))])
    return None


def _venv(python: Path) -> str:
    return python.parent.parent.name


def check_framework(plan: dict[str, Any]) -> Check:
    promised, found = plan.get("framework"), framework_python(plan)
    if found:
        return Check("framework", promised or "any", _venv(found[1]), True)
    complaint = f"no environment /opt/aws_neuronx_venv_{promised}_* is there"
    return Check("framework", promised or "any or none", "none", not promised, complaint)


def check_cores(plan: dict[str, Any], cores: int) -> list[Check]:
    """The computation and the device memory of each core. Raises OSError when the cache's folder cannot be made."""
    expected, found = EXPECTED.format(cores), framework_python(plan)
    if not found:
        none = "no framework here: nccom-test computes instead"
        unread = Check("memory-test", MEMORY_EXPECTED.format(cores), "not tested: no framework here", True)
        return [Check("self-test", expected, none, True), unread]
    stack, python = found
    files.path(CACHE).mkdir(parents=True, exist_ok=True)
    test = _test_with_jax if stack == "jax" else _test_with_pytorch
    ends = time.monotonic() + plan["self_test"]["all_seconds"]
    answers = test(_Computation(plan, stack, python, ends), cores)
    return [_check_computation(answers, stack, python, cores), _check_memory(answers, cores)]


def _check_computation(answers: list[_Answer], stack: str, python: Path, cores: int) -> Check:
    expected = EXPECTED.format(cores)
    places: dict[str, list[int]] = {}
    for core, answer in enumerate(answers):
        places.setdefault(answer.wrong or answer.trouble, []).append(core)
    right = len(places.pop("", []))
    wrong = [f"{_cores(places[complaint])} {complaint}" for complaint in list(places)[:NAMED]]
    if more := [core for complaint in list(places)[NAMED:] for core in places[complaint]]:
        wrong.append(f"{_cores(more)} {'is' if len(more) == 1 else 'are'} wrong in other ways")
    if len(answers) > cores:
        wrong.append(f"{stack} shows {len(answers)} cores, not {cores}")
    again = [core for core, answer in enumerate(answers) if answer.again and answer.right]
    summary = f"{right} of {cores} cores, with {_venv(python)}"
    told = [summary, *wrong, *([f"{_cores(again)} at the second attempt"] if again else [])]
    wrong_numbers = any(answer.wrong for answer in answers)
    return Check("self-test", expected, "; ".join(told), not wrong, "; ".join(wrong), wrong_numbers=wrong_numbers)


def _check_memory(answers: list[_Answer], cores: int) -> Check:
    """Wrong numbers fail the node; a core that came to none is a warning: it has computed right without its memory."""
    told: dict[str, list[int]] = {}
    for core, answer in enumerate(answers):
        told.setdefault(answer.memory, []).append(core)
    right = len(told.pop("", []))
    wrong = [complaint for complaint in told if not complaint.startswith(UNREAD)]
    shown = [*wrong, *(complaint for complaint in told if complaint not in wrong)][:NAMED]
    complaint = "; ".join(f"{_cores(told[each])} {each}" for each in shown)
    found = "; ".join(filter(None, (f"{right} of {cores} cores", complaint)))
    check = Check("memory-test", MEMORY_EXPECTED.format(cores), found, not told, complaint, wrong_numbers=bool(wrong))
    return check if check.ok or wrong else check.warned()


class _Answer(NamedTuple):
    """What a core came to. wrong: what is wrong with its numbers; trouble: why it has none. again: second attempt.

    memory: what is wrong with its device memory, or UNREAD and why.
    """

    wrong: str = ""
    trouble: str = ""
    again: bool = False
    memory: str = UNREAD

    @property
    def right(self) -> bool:
        return not (self.wrong or self.trouble)


class _Computation(NamedTuple):
    """Starts the computation in processes of its own, until `ends` on the monotonic clock."""

    plan: dict[str, Any]
    stack: str
    python: Path
    ends: float

    def answers(self, seconds: float, core: int | None = None) -> list[_Answer]:
        """Those of the cores that came to one; if not all did, the last one is why."""
        seconds = min(seconds, self.ends - time.monotonic())
        if seconds <= 0:
            return [_Answer(trouble="was not tried: the self-test ran out of time")]
        ran = self._run(seconds, core)
        # The compiler's dots come without an end of their line.
        computed, read = ([_told(line, mark) for line in ran.out.splitlines() if mark in line] for mark in MARKS)
        trouble = ran.trouble.replace(str(self.python), "the computation")
        unread = f"{UNREAD}: {trouble or 'the computation prints nothing of it'}"
        read += [unread] * (len(computed) - len(read))
        found = [_Answer(wrong=wrong, memory=memory) for wrong, memory in zip(computed, read)]  # noqa: B905 - 3.10
        if trouble:
            late = f"gives no answer within {seconds:g} seconds"
            found.append(_Answer(trouble=late if trouble.endswith(late) else f"is not proven: {trouble}"))
        return found

    def _run(self, seconds: float, core: int | None) -> Run:
        lnc, folder = self.plan["logical_neuroncore_config"], str(files.path(CACHE))
        changes = {
            # As in the activated environment, whose compiler is a program beside its Python.
            "PATH": os.pathsep.join((str(self.python.parent), environment()["PATH"])),
            "NEURON_COMPILE_CACHE_URL": folder,
            "TORCH_NEURONX_NEFF_CACHE_DIR": folder,
            # Where the device fails, TorchNeuron would compute on the CPU instead, and be right.
            "TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS": "1",
            # By default the same one for all processes.
            "NEURON_RT_ROOT_COMM_ID": f"localhost:{self.plan['self_test']['first_port'] + (core or 0)}",
        }
        changes.update({"NEURON_LOGICAL_NC_CONFIG": str(lnc)} if lnc else {})
        changes.update({"NEURON_RT_VISIBLE_CORES": str(core)} if core is not None else {})
        # On standard input: a script's own folder would be searched for modules first.
        source = Path(__file__).with_name("compute.py").read_text()
        command = (str(self.python), "-", self.stack, str(self.plan["self_test"]["memory_blocks"]))
        return run(*command, seconds=seconds, changes=changes, stdin=source, folder=folder)


def _told(line: str, mark: str) -> str:
    return str(json.JSONDecoder().raw_decode(line.partition(mark)[2])[0])


def _test_with_pytorch(computation: _Computation, cores: int) -> list[_Answer]:
    """A process for each core: the first alone, as it compiles, the others side by side."""
    times = computation.plan["self_test"]

    def attempt(core: int) -> _Answer:
        found = computation.answers(times["seconds"] if core else times["first_seconds"], core)
        return found[0] if found else _Answer(trouble="prints no answer")

    answers = _again_alone([attempt(0)], attempt)
    with ThreadPoolExecutor(min(cores, os.cpu_count() or 1)) as pool:
        answers += pool.map(attempt, range(1, cores))
    return _again_alone(answers, attempt)


def _again_alone(answers: list[_Answer], attempt: Callable[[int], _Answer]) -> list[_Answer]:
    """The answers, with those of a second attempt where there was none: many processes at once can be too many.

    There is none after wrong numbers from any core, which no second attempt makes right, nor once LOST cores have come
    to nothing in theirs.
    """
    if any(answer.wrong for answer in answers):
        return answers
    told: list[_Answer] = []
    for core, answer in enumerate(answers):
        lost = sum(bool(other.again and other.trouble) for other in told)
        due = answer.trouble and not answer.again and lost < LOST
        told.append(attempt(core)._replace(again=True) if due else answer)
    return told


def _test_with_jax(computation: _Computation, cores: int) -> list[_Answer]:
    """One process computes on the cores one after the other; what ends it, ends it at the first without an answer."""
    times = computation.plan["self_test"]
    found = computation.answers(times["first_seconds"] + times["seconds"])
    unfinished = 0 < len(found) <= cores and bool(found[-1].trouble)
    again = unfinished and not any(answer.wrong for answer in found)
    if again:
        found = computation.answers(times["first_seconds"] + times["seconds"])
    if len(found) > cores and found[-1].trouble:
        # It ended badly after the last core.
        found.pop()
    missing = _Answer(trouble="was not reached" if found and found[-1].trouble else "is not shown by JAX")
    return [answer._replace(again=again) for answer in found] + [missing] * (cores - len(found))


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
