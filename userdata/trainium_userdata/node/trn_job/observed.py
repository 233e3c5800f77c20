"""What the frameworks of a job with `observe` counted: the file that its processes load, and what they left."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

from .launch import Launch
from .progress import Compiling

MOST_NAMES = 50


class Observed:
    """Does nothing for a job without `observe`."""

    def __init__(self, launch: Launch, compiling: Compiling) -> None:
        self._is_wanted = launch.spec.observe
        self._folder = launch.place / "observe"
        self._compiling = compiling

    def command(self, text: str) -> str:
        """The command with what makes its processes observe themselves: after the profile, which may set PYTHONPATH.

        The frameworks print why they compile; variables that the job sets itself stay.
        """
        if not self._is_wanted:
            return text
        library, counted = self._folder / "library", self._folder / "counted"
        library.mkdir(parents=True)
        counted.mkdir()
        shutil.copy(Path(__file__).with_name("observer.py"), library / "sitecustomize.py")
        lines = [
            f"export TRN_OBSERVE_DIR={shlex.quote(str(counted))}",
            f'export PYTHONPATH={shlex.quote(str(library))}"${{PYTHONPATH:+:$PYTHONPATH}}"',
            'export TORCH_LOGS="${TORCH_LOGS:-recompiles}"',
            'export PT_XLA_DEBUG_LEVEL="${PT_XLA_DEBUG_LEVEL:-1}"',
        ]
        return "\n".join([*lines, text])

    def as_record(self) -> dict[str, Any]:
        """Of the process that has most of each; `processes`: how many have written."""
        if not self._is_wanted:
            return {}
        found = [one for one in map(_read, sorted((self._folder / "counted").glob("*.json"))) if one]
        fallbacks: dict[str, int] = {}
        for one in found:
            for name, count in one["fallbacks"].items():
                fallbacks[name] = max(count, fallbacks.get(name, 0))
        most = sorted(fallbacks.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMES]
        return {
            "observed": {
                "processes": len(found),
                "stack": found[0]["stack"] if found else "",
                "fallbacks": dict(most),
                "compiled": max((one["compiled"] for one in found), default=0),
                "compile_seconds": round(max((one["compile_seconds"] for one in found), default=0), 3),
                "reasons": dict(self._compiling.reasons.most_common(MOST_NAMES)),
                "errors": dict(self._compiling.errors.most_common(MOST_NAMES)),
            }
        }


def _read(file: Path) -> dict[str, Any]:
    """Empty for a file that a process did not write to its end."""
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found
