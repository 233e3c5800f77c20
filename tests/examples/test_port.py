"""Training on the CPU with examples/port, before and after the port to native PyTorch."""

import os
import re
import subprocess

import pytest

from tests.core.container import TIMEOUT_SECONDS, TORCH_PYTHON, free_port
from tests.layout.repository import ROOT

SCRIPTS = ROOT / "examples" / "port"


def percent_correct(script: str, *, processes: int = 1) -> int:
    """Train with a script. Returns the percentage of bytes that the model predicted correctly."""
    common = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": str(processes)}
    running = [
        subprocess.Popen(
            [TORCH_PYTHON, SCRIPTS / script, "--bytes", "6000", "--batch", str(128 // processes)],
            env={**common, **group, "RANK": str(rank)} if processes > 1 else common,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(processes)
    ]
    printed = [process.communicate(timeout=TIMEOUT_SECONDS)[0] for process in running]
    assert [process.returncode for process in running] == [0] * processes, printed
    found = re.search(r"^right: (\d+) of (\d+)$", printed[0], re.MULTILINE)
    assert found, printed
    return 100 * int(found[1]) // int(found[2])


@pytest.mark.parametrize(("script", "processes"), [("train.py", 1), ("train_native.py", 1), ("train_native.py", 2)])
def test_script_learns_before_and_after_the_port(script: str, processes: int) -> None:
    assert percent_correct(script, processes=processes) >= 15
