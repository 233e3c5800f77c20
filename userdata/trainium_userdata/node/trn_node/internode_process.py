"""The process of `trn-node internode`, separate from the watch because it takes minutes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, NamedTuple

from . import files
from .check import Check
from .internode import NAME
from .internode_rounds import RESULT, TASK, Task


class InternodeResult(NamedTuple):
    """The check for the record. problem: why it fails this node; empty if it does not."""

    check: dict[str, Any]
    problem: str


class InternodeProcess:
    """One at a time: the process of another membership is ended first. process: None before the first."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._task: Task | None = None

    def tested(self, task: Task) -> InternodeResult | None:
        """The result of the test of the task's membership; None while it is running. Starts it if necessary."""
        try:
            result = json.loads(files.read(RESULT))
            if result["version"] == task.version:
                return InternodeResult(result["check"], result["problem"])
        except (ValueError, LookupError, TypeError):
            pass
        if self.process is None or self._task != task:
            self._start(task)
        elif self.process.poll() is not None:
            why = f"not tested: it ended with exit code {self.process.returncode}"
            warning = f"all-reduce over nodes: {why}"
            expected = f"a correct all-reduce over {len(task.nodes)} nodes"
            return InternodeResult(Check(NAME, expected, why, True, warning=warning).to_json(), "")
        return None

    def _start(self, task: Task) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait()
        files.write(TASK, json.dumps(task._asdict()))
        self.process = subprocess.Popen([sys.executable, "-m", "trn_node", "internode"])
        self._task = task
