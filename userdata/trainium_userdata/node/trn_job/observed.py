"""The files of a job with `observe` or `profile`: the module that its processes load, and their counters."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

from .launch import Launch
from .observer import profile_variables
from .progress import Compiling

MAX_NAMES = 50


class FrameworkCounters:
    """Does nothing for a job with neither `observe` nor `profile`."""

    def __init__(self, launch: Launch, compiling: Compiling) -> None:
        self._launch = launch
        self._folder = launch.place / "observe"
        self._compiling = compiling

    def command(self, text: str) -> str:
        """Add the observer to a command: after the login shell's profile, which may set PYTHONPATH."""
        spec = self._launch.spec
        lines = [*(self._counting() if spec.observe else ()), *(self._profiling() if spec.profile else ())]
        if spec.observe or (spec.profile and spec.has_ranks):
            library = self._folder / "library"
            library.mkdir(parents=True)
            shutil.copy(Path(__file__).with_name("observer.py"), library / "sitecustomize.py")
            lines.append(f'export PYTHONPATH={shlex.quote(str(library))}"${{PYTHONPATH:+:$PYTHONPATH}}"')
        return "\n".join([*lines, text])

    def _counting(self) -> list[str]:
        """The folder of the counters, and the variables that make frameworks print why they compile.

        The job's own values of the latter take precedence.
        """
        counted = self._folder / "counted"
        counted.mkdir(parents=True)
        return [
            f"export TRN_OBSERVE_DIR={shlex.quote(str(counted))}",
            'export TORCH_LOGS="${TORCH_LOGS:-recompiles}"',
            'export PT_XLA_DEBUG_LEVEL="${PT_XLA_DEBUG_LEVEL:-1}"',
        ]

    def _profiling(self) -> list[str]:
        """Processes of torchrun set the runtime's variables themselves, by rank; other processes inherit them."""
        spec, folder = self._launch.spec, str(self._launch.place / "outputs/profile")
        if spec.has_ranks:
            device = {"TRN_PROFILE_DEVICE": "1"} if spec.profile_device else {}
            variables = {"TRN_PROFILE_RANKS": ",".join(map(str, spec.profile)), "TRN_PROFILE_DIR": folder, **device}
        elif self._launch.rank in spec.profile:
            variables = profile_variables(folder, device=spec.profile_device)
        else:
            variables = {}
        return [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]

    def as_record(self) -> dict[str, Any]:
        """The highest counters of any process, the number of processes with counters, and what the output shows.

        Empty without `observe`.
        """
        if not self._launch.spec.observe:
            return {}
        counts = [*filter(None, map(_read, sorted((self._folder / "counted").glob("*.json"))))]
        fallbacks: dict[str, int] = {}
        for process in counts:
            for name, count in process["fallbacks"].items():
                fallbacks[name] = max(count, fallbacks.get(name, 0))
        most = sorted(fallbacks.items(), key=lambda item: (-item[1], item[0]))[:MAX_NAMES]
        return {
            "observed": {
                "processes": len(counts),
                "stack": counts[0]["stack"] if counts else "",
                "fallbacks": dict(most),
                "compiled": max((process["compiled"] for process in counts), default=0),
                "compile_seconds": round(max((process["compile_seconds"] for process in counts), default=0), 3),
                "reasons": dict(self._compiling.reasons.most_common(MAX_NAMES)),
                "errors": dict(self._compiling.errors.most_common(MAX_NAMES)),
            }
        }


def _read(file: Path) -> dict[str, Any]:
    """The counters of a process; empty if the file cannot be read or is incomplete."""
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found
