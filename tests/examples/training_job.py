"""Runs a training script with one process per rank, as torchrun starts it, and stops it at a step."""

import fcntl
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.core.container import TIMEOUT_SECONDS, TORCH_PYTHON, free_port

PROGRESS = re.compile(r"^TRN step=(\d+) loss=(\d+\.\d+) tokens=(\d+)((?: \w+=\S+)*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Job:
    """Trains in a folder, any number of times.

    Attributes:
        environments: Variables of single ranks.
    """

    folder: Path
    script: Path
    options: Mapping[str, Any]
    processes: int = 1
    environments: Mapping[int, Mapping[str, str]] = field(default_factory=dict[int, Mapping[str, str]])

    def arguments(self, **options: Any) -> list[str]:
        values = {**self.options, **options}
        return [str(self.script), *(word for name, value in values.items() for word in (f"--{name}", str(value)))]

    def start(self, *, environment: Mapping[str, str] | None = None, **options: Any) -> "list[subprocess.Popen[str]]":
        """Start one process per rank, with the variables that torchrun sets."""
        self.folder.mkdir(exist_ok=True)
        common = {
            "PYTHONWARNINGS": "ignore",
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "OMP_NUM_THREADS": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": free_port(),
            "WORLD_SIZE": str(self.processes),
            "TRN_CHECKPOINT_DIR": "checkpoints",
            "TRN_OUTPUT_DIR": "outputs",
            **(environment or {}),
        }
        return [
            subprocess.Popen(
                [TORCH_PYTHON, *self.arguments(**options)],
                cwd=self.folder,
                env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank), **self.environments.get(rank, {})},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(self.processes)
        ]

    def run(self, *, environment: Mapping[str, str] | None = None, **options: Any) -> "Run":
        return finish(self.start(environment=environment, **options))

    def interrupt(
        self, number: signal.Signals, after_step: int, *, environment: Mapping[str, str] | None = None
    ) -> "Run":
        """Send a signal to the last rank when rank 0 has printed a step, long before the last step."""
        processes = self.start(environment=environment)
        output = processes[0].stdout
        assert output is not None
        # Rank 0 cannot run far ahead of this reader: its lines fill a small pipe.
        fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, 4096)
        read = ""
        while f"TRN step={after_step} " not in read:
            line = output.readline()
            assert line, read
            read += line
        processes[-1].send_signal(number)
        run = finish(processes)
        return Run(codes=run.codes, outputs=[read + run.outputs[0], *run.outputs[1:]])

    def checkpoints(self) -> list[str]:
        return sorted(place.name for place in (self.folder / "checkpoints").iterdir())


@dataclass(frozen=True, kw_only=True)
class Run:
    """The exit codes and the outputs, by rank."""

    codes: list[int]
    outputs: list[str]

    @property
    def losses(self) -> dict[int, str]:
        """The losses as printed, by step."""
        return {int(step): loss for step, loss, *_ in PROGRESS.findall(self.outputs[0])}


def finish(processes: "list[subprocess.Popen[str]]") -> Run:
    outputs = [process.communicate(timeout=TIMEOUT_SECONDS)[0] for process in processes]
    return Run(codes=[process.returncode for process in processes], outputs=outputs)
