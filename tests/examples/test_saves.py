"""Only whole states are complete, in every layout of checkpoints, if a job is disturbed in the middle of its saves.

torch.distributed.checkpoint saves for itself, on two nodes.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.container import TIMEOUT_SECONDS, TORCH_PYTHON, free_port
from tests.userdata.saving_nodes import COPIES, SavingNodes
from tools.lab import saving
from trn_job import checkpoint_download

ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module", autouse=True)
def torch_is_there() -> None:
    if not TORCH_PYTHON.exists():
        pytest.fail(f"there is no {TORCH_PYTHON}; run: make torch-env")


@pytest.fixture
def nodes(tmp_path: Path) -> SavingNodes:
    return SavingNodes(tmp_path, saving.NODES)


@pytest.fixture
def processes(nodes: SavingNodes) -> Iterator[list["subprocess.Popen[str]"]]:
    """The processes of two nodes, in the middle of the saves of the second step."""
    common = {**ENVIRONMENT, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    running: list[subprocess.Popen[str]] = []
    for rank in range(saving.NODES):
        own = {"RANK": str(rank), "TRN_CHECKPOINT_DIR": str(nodes.place(rank))}
        command = [str(TORCH_PYTHON), saving.__file__, "3"]
        running.append(subprocess.Popen(command, env={**common, **own}, stdout=subprocess.PIPE, text=True))
    read_until(running[0], "saved step 1\n")
    # DeepSpeed's `latest` leads to the next checkpoint soon.
    nodes.look()
    for process in running:
        read_until(process, "saves half of step 2\n")
    growing = nodes.place(1) / "other-2/1.json"
    for _ in range(4):
        size = growing.stat().st_size
        while growing.stat().st_size == size:
            time.sleep(saving.GROWTH_SECONDS / 2)
        nodes.look()
    yield running
    for process in running:
        process.kill()
        process.communicate(timeout=TIMEOUT_SECONDS)


def read_until(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stdout is not None
    assert text in iter(process.stdout.readline, "")


def states(nodes: SavingNodes, folder: Path) -> dict[str, Any]:
    """Step and states of each complete checkpoint by name, as a node downloads it to resume."""
    store: Any = nodes.store
    paths = [
        str(checkpoint_download.download(nodes.launches[1]._replace(resume_from=name), store, folder / name)[0])
        for name in nodes.complete
    ]
    command = [TORCH_PYTHON, saving.__file__, "load", *paths]
    loaded = subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT_SECONDS)
    return dict(zip(nodes.complete, json.loads(loaded.stdout), strict=True))


def whole(*steps: int) -> dict[str, Any]:
    return {name.format(step): [step, saving.state_after(step)] for step in steps for name in saving.LAYOUTS.values()}


def test_killed_job_has_only_its_whole_checkpoints_in_each_layout(
    nodes: SavingNodes, processes: list["subprocess.Popen[str]"], tmp_path: Path
) -> None:
    assert states(nodes, tmp_path / "while it runs") == whole(1)
    for process in processes:
        process.kill()
        process.wait()
    nodes.end(exit_code=-9)
    nodes.nodes[0].await_parts(0, lambda: True)
    assert states(nodes, tmp_path / "afterwards") == whole(1)
    unfinished, *incomplete, copies = nodes.log_lines
    assert "checkpoints: renamed-2.tmp is not stored" in unfinished
    assert {line.partition(" is not complete: ")[0] for line in incomplete} == {
        f"checkpoint {name.format(2)}" for name in saving.LAYOUTS.values()
    }
    assert copies == COPIES


def test_save_that_ends_after_a_notice_is_complete_in_each_layout(
    nodes: SavingNodes, processes: list["subprocess.Popen[str]"], tmp_path: Path
) -> None:
    for process in processes:
        process.send_signal(signal.SIGUSR1)
    assert [process.wait(TIMEOUT_SECONDS) for process in processes] == [0, 0]
    nodes.end()
    nodes.nodes[0].await_parts(0, lambda: True)
    assert states(nodes, tmp_path / "afterwards") == whole(1, 2)
    assert nodes.log_lines == []
