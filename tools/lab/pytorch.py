"""PyTorch's own torchrun on nodes, on CPUs: shares the environment of `make torch-env` with them, read-only."""

import re
from pathlib import Path

from tools.lab.layers import FRAMEWORK, FRAMEWORK_ENVIRONMENT, GPU_FRAMEWORK_ENVIRONMENT, PATH_ON_NODE
from tools.lab.node import Node
from tools.lab.paths import REPOSITORY

TORCH = (REPOSITORY / ".venv-torch").resolve()
ENVIRONMENT, PYTHON_HOME = "/opt/trnlab-torch", "/opt/trnlab-python"
PYTHON = f"{ENVIRONMENT}/bin/python"
"""The Python of the environment on a node."""

BACKEND = "opt/trnlab-backend"


def with_torchrun(_number: int, node: Node) -> None:
    """Put PyTorch's own torchrun beside the stand-in for the framework."""
    share_torch(node)
    # The all-reduce of trn-node needs NeuronCores, so the stand-in still runs it.
    stand_in = f'case "$*" in *all_reduce.py*) exec {PATH_ON_NODE}/torchrun.py "$@" ;; esac'
    # A job has one process and not 32 for 32 NeuronCores: all nodes share this machine's CPUs.
    one_process = (
        'if [[ -v TRN_JOB || -v SLURM_JOB_ID ]]; then set -- "${@/#--nproc_per_node=32/--nproc_per_node=1}"; fi'
    )
    # One thread in each process, for the same reason: threads that wait for each other took 20 times as long.
    variables = f"export OMP_NUM_THREADS=1 PYTHONPATH=/{BACKEND}${{PYTHONPATH:+:$PYTHONPATH}}"
    script = f'#!/bin/bash\n{stand_in}\n{one_process}\n{variables}\nexec {PYTHON} -P -m torch.distributed.run "$@"\n'
    folders = (FRAMEWORK_ENVIRONMENT, GPU_FRAMEWORK_ENVIRONMENT)
    environment = next(node.root / folder for folder in folders if (node.root / folder).is_dir())
    program = environment / "bin/torchrun"
    program.write_text(script)
    program.chmod(0o755)
    if environment.match(FRAMEWORK_ENVIRONMENT):
        _install_backend(node)


def _install_backend(node: Node) -> None:
    """Let PyTorch load the stand-in for TorchNeuron as it loads a backend: by the entry point of a package."""
    node.write(f"{BACKEND}/torch_neuronx.py", (FRAMEWORK / "torch_neuronx.py").read_text())
    package = f"{BACKEND}/torch_neuronx-0.dist-info"
    node.write(f"{package}/METADATA", "Metadata-Version: 2.1\nName: torch-neuronx\nVersion: 0\n")
    node.write(f"{package}/entry_points.txt", "[torch.backends]\ntorch_neuronx = torch_neuronx:autoload\n")


def share_torch(node: Node) -> None:
    """Give a node the environment of `make torch-env` at ENVIRONMENT.

    Jobs do not see the folders of this machine in which people keep checkouts: /home, /tmp and /var/tmp.
    """
    home = re.search("^home = (.*)/bin$", (TORCH / "pyvenv.cfg").read_text(), re.MULTILINE)
    assert home
    libraries = TORCH / "lib"
    python = next(libraries.glob("python3.*")).name
    node.shared[f"{ENVIRONMENT}/lib"] = libraries
    base = home[1]
    if base != "/usr":  # Nodes have the Python of the distribution.
        base = PYTHON_HOME
        node.shared[PYTHON_HOME] = Path(home[1])
    node.write(f"{ENVIRONMENT.lstrip('/')}/pyvenv.cfg", f"home = {base}/bin\ninclude-system-site-packages = false\n")
    program = node.root / PYTHON.lstrip("/")
    program.parent.mkdir(parents=True, exist_ok=True)
    program.with_name(python).symlink_to(f"{base}/bin/{python}")
    # A Python of pyenv looks for its shared library only in the folder in which it was built.
    program.write_text(f'#!/bin/sh\nexec env LD_LIBRARY_PATH={base}/lib {ENVIRONMENT}/bin/{python} "$@"\n')
    program.chmod(0o755)
