"""torch.distributed.checkpoint saves in place, on two nodes; a job resumes from a whole state."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.core.container import TIMEOUT_SECONDS, TORCH_PYTHON, free_port
from tests.userdata.saving_nodes import SavingNodes
from trn_job import checkpoints

SAVES = """
import os, pathlib, sys, time
import torch, torch.distributed as dist
import torch.distributed.checkpoint as dcp

rank, folder, go = dist.init_process_group("gloo") or dist.get_rank(), pathlib.Path(sys.argv[1]), sys.stdin

class Slow(dcp.FileSystemWriter):
    def write_data(self, plan, planner):
        if rank:
            print("before", flush=True)
            go.readline()
        return super().write_data(plan, planner)

for step in (1, 2):
    state = {f"weights-{rank}": torch.full((1000,), float(step))}
    dcp.save(state, storage_writer=Slow(folder / f"step-{step}"))
    print("saved", step, flush=True)
    go.readline()
"""
LOADS = """
import sys, torch, torch.distributed.checkpoint as dcp
state = {f"weights-{rank}": torch.zeros(1000) for rank in (0, 1)}
dcp.load(state, checkpoint_id=sys.argv[1], no_dist=True)
print(sorted({value for each in state.values() for value in each.tolist()}))
"""


@pytest.fixture(scope="module", autouse=True)
def torch_is_there() -> None:
    if not TORCH_PYTHON.exists():
        pytest.fail(f"there is no {TORCH_PYTHON}; run: make torch-env")


def started(code: str, *arguments: str, **variables: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [TORCH_PYTHON, "-c", code, *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1", **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def read_until(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stdout is not None
    read = ""
    while text not in read:
        line = process.stdout.readline()
        assert line, read
        read += line


def go_on(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_job_resumes_from_the_last_whole_distributed_checkpoint(tmp_path: Path) -> None:
    nodes, port = SavingNodes(tmp_path, 2), free_port()
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    ranks = [started(SAVES, str(nodes.place(rank)), RANK=str(rank), **common) for rank in (0, 1)]
    for step in (1, 2):
        read_until(ranks[1], "before")
        while not list(nodes.place(0).glob(f"step-{step}/*.distcp")):
            assert ranks[0].poll() is None
        nodes.looks()
        assert sorted(nodes.complete) == [f"step-{number}" for number in range(1, step)]
        if step == 1:
            go_on(ranks[1])
            for process in ranks:
                read_until(process, "saved")
            nodes.looks()
            assert sorted(nodes.complete) == ["step-1"]
            for process in ranks:
                go_on(process)
    for process in ranks:
        process.kill()
        process.communicate(timeout=TIMEOUT_SECONDS)
    nodes.end(exit_code=-9)
    nodes.nodes[0].await_parts(0, lambda: True)
    assert sorted(nodes.complete) == ["step-1"]
    assert nodes.log_lines == ["checkpoint step-2 is not complete: node 1: its folder has no files"]
    store: Any = nodes.store
    resumed = checkpoints.download(nodes.launches[1]._replace(resume_from="step-1"), store, tmp_path / "resumed")
    loaded = started(LOADS, str(resumed)).communicate(timeout=TIMEOUT_SECONDS)[0]
    assert loaded == "[1.0]\n"
