"""examples/slurm with stand-ins for srun and torchrun, and nothing else of this package."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.userdata.test_bash import SHELLCHECK

EXAMPLES = Path(__file__).parents[2] / "examples"
SRUN = """while [[ $1 == --* ]]; do shift; done
export TRN_NODES=2 HEAD_NODE=10.0.0.7 TRN_NEURON_CORES=32 TRN_RENDEZVOUS_PORT=41000
for rank in 0 1; do TRN_NODE_RANK=$rank "$@"; done"""


@pytest.mark.parametrize("name", ["node.sh", "train.sbatch"])
def test_shellcheck_finds_nothing(name: str) -> None:
    subprocess.run([SHELLCHECK, "--severity=style", EXAMPLES / "slurm" / name], check=True)


def test_batch_script_starts_torchrun_once_on_each_node(tmp_path: Path) -> None:
    folder = tmp_path / "slurm"
    shutil.copytree(EXAMPLES / "slurm", folder)
    for name, body in {"srun": SRUN, "torchrun": 'echo "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    # In place of the nodes' profile, which sets PATH for login shells.
    (tmp_path / ".bash_profile").write_text(f"PATH={tmp_path}:$PATH\n")
    environment = {"PATH": f"{tmp_path}:{os.defpath}", "HOME": str(tmp_path), "SLURM_JOB_ID": "7"}
    command = ["bash", "train.sbatch", "--steps", "5"]
    completed = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    checkpoints = f"{folder}/checkpoints/7"
    assert completed.stdout.splitlines() == [
        f"--nnodes=2 --node_rank={rank} --nproc_per_node=32 --master_addr=10.0.0.7 --master_port=41000 "
        f"../lm/train.py --checkpoints {checkpoints} --outputs {checkpoints}/outputs --steps 5"
        for rank in (0, 1)
    ]
