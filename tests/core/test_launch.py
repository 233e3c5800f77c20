"""The torchrun command line, run twice on this machine, once for each node, with PyTorch on CPUs."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.core.container import TIMEOUT_SECONDS, TORCH_PYTHON, free_port
from tests.layout.repository import ROOT
from trainium_core.facts import facts
from trainium_core.nodes.next_steps import torchrun_command
from trainium_core.plan import Plan

NODES = 2
SCRIPT = """import os
# In one write: the processes share the pipe.
os.write(1, "{RANK} {GROUP_RANK} {MASTER_ADDR}\\n".format_map(os.environ).encode())
"""


@pytest.fixture
def launched(tmp_path: Path) -> dict[int, list[list[str]]]:
    """The output of the processes of each node, by the rank of the node. The node with rank 0 starts last."""
    if not TORCH_PYTHON.exists():
        pytest.fail(f"there is no {TORCH_PYTHON.relative_to(ROOT)}; run: make torch-env")
    (tmp_path / "train.py").write_text(SCRIPT)
    plan = Plan(instance_type="trn2.3xlarge", region="sa-east-1", nodes=NODES)
    # Without the login shell, which only nodes have; tests/userdata tests it.
    (*login, line) = shlex.split(torchrun_command(plan).replace(str(facts()["rendezvous"]["port"]), free_port()))
    assert login == ["bash", "-lc"]
    environment = {"PATH": f"{TORCH_PYTHON.parent}:{os.environ['PATH']}", "HEAD_NODE": "127.0.0.1"}
    nodes = {
        rank: subprocess.Popen(
            ["bash", "-c", line],
            cwd=tmp_path,
            env={**environment, "OMP_NUM_THREADS": "1", "TRN_NODE_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in reversed(range(NODES))
    }
    output = {rank: node.communicate(timeout=TIMEOUT_SECONDS)[0] for rank, node in nodes.items()}
    assert [node.returncode for node in nodes.values()] == [0] * NODES
    return {rank: [line.split() for line in text.splitlines()] for rank, text in output.items()}


def test_ranks_of_processes_follow_the_rank_of_their_node(launched: dict[int, list[list[str]]]) -> None:
    assert sorted(launched[0]) == [[str(rank), "0", "127.0.0.1"] for rank in range(4)]
    assert sorted(launched[1]) == [[str(rank), "1", "127.0.0.1"] for rank in range(4, 8)]
