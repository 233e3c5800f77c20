"""A SageMaker container on this machine: its folders and files, and the entry program started in it."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.layout.repository import ROOT
from trainium_core.engines.sagemaker.jobs.job import TrainingJob
from trainium_core.engines.sagemaker.jobs.request import channel_files, training_job_request
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.plan import Plan

TORCH_PYTHON = ROOT / ".venv-torch" / "bin" / "python"
TIMEOUT_SECONDS = 300  # Importing torch takes time on a busy machine.
NEURON_LS = """#!/bin/sh
echo '[{"neuron_device": 0, "nc_count": %d, "memory_size": 34359738368, "connected_to": null}]'
"""


def free_port() -> str:
    """A free port, because concurrent runs of these tests may use the plan's port.

    It is not one of those that Linux gives to connections, which could take it before a test listens there.
    """
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with suppress(OSError), socket.socket() as taken:
            taken.bind(("127.0.0.1", port))
            return str(port)


@dataclass(frozen=True, kw_only=True)
class Container:
    """One node of a job.

    Attributes:
        ml: The folder that replaces /opt/ml.
        request: The CreateTrainingJob request.
        bin: A folder with programs, first in PATH.
    """

    ml: Path
    request: dict[str, Any]
    bin: Path

    def command(self, python: Path = Path(sys.executable)) -> list[str]:
        """The command of the request, with /opt/ml and python3 replaced by those of the test."""
        algorithm = self.request["AlgorithmSpecification"]
        interpreter, entry, *script = algorithm["ContainerEntrypoint"]
        assert interpreter == "python3"
        return [str(python), entry.replace("/opt/ml", str(self.ml)), *script, *algorithm.get("ContainerArguments", [])]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the request, and those that every container has."""
        variables = {
            name: value.replace("/opt/ml", str(self.ml)) for name, value in self.request["Environment"].items()
        }
        return {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.ml), "OMP_NUM_THREADS": "1", **variables}

    def start(self, python: Path = Path(sys.executable)) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.command(python),
            env=self.environment,
            cwd=self.ml,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, python: Path = Path(sys.executable)) -> tuple[int, str]:
        """Return the exit code and all output. Kills the command and its children at a time limit."""
        child = self.start(python)
        try:
            output, _ = child.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            output, _ = child.communicate()
        return child.returncode, output

    @property
    def failure(self) -> str:
        return (self.ml / "output" / "failure").read_text()


def container(
    folder: Path,
    plan: Plan,
    job: TrainingJob,
    package: SourcePackage,
    *,
    hosts: tuple[str, ...] = ("algo-1",),
    current: str = "algo-1",
    cores: int | None = 2,
    hyperparameters: Mapping[str, str] | None = None,
) -> Container:
    """A container as SageMaker prepares one for the request.

    Args:
        folder: The folder for the container's files.
        plan: The plan.
        job: The job.
        package: The packed source.
        hosts: Names of all nodes.
        current: Name of this node.
        cores: The number of cores that the stand-in for neuron-ls prints; None without neuron-ls.
        hyperparameters: The hyperparameters of the request.
    """
    ml, request = folder / "opt" / "ml", training_job_request(plan, job)
    code, config, programs = ml / "input" / "data" / "code", ml / "input" / "config", folder / "bin"
    for place in (code, config, programs):
        place.mkdir(parents=True)
    for name, content in channel_files(package).items():
        (code / name).write_bytes(content)
    (config / "resourceconfig.json").write_text(json.dumps({"current_host": current, "hosts": [*hosts]}))
    (config / "hyperparameters.json").write_text(json.dumps(hyperparameters or {}))
    channels = {channel["ChannelName"]: {} for channel in request["InputDataConfig"]}
    (config / "inputdataconfig.json").write_text(json.dumps(channels))
    if cores is not None:
        neuron_ls = programs / "neuron-ls"
        neuron_ls.write_text(NEURON_LS % cores)
        neuron_ls.chmod(0o755)
    return Container(ml=ml, request=request, bin=programs)
