"""examples/fsdp trains on CPUs: on two nodes of two processes, whose folders have nothing in common."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.core.container import TIMEOUT_SECONDS, TORCH_PYTHON, free_port
from tests.examples.training_job import PROGRESS, Job
from tests.layout.repository import ROOT
from tests.userdata.saving_nodes import SavingNodes
from trainium_core.jobs.request import job_request, read_job_file
from trainium_core.plan import Plan
from trn_job.checkpoint_download import download

FOLDER = ROOT / "examples" / "fsdp"
NODES = 2
STEPS = 30
OPTIONS = {"width": 32, "layers": 1, "heads": 4, "context": 32, "batch": 2, "report-every": 1, "checkpoint-every": 5}


def fsdp(folder: Path, *, tensor_parallel: int, **variables: str) -> Job:
    """A job whose nodes have as many processes as share a layer.

    Args:
        variables: Variables of all processes of a node, in whose values {} is the number of the node.
    """
    environments = {
        rank: {
            "LOCAL_WORLD_SIZE": str(tensor_parallel),
            **{name: value.format(rank // tensor_parallel) for name, value in variables.items()},
        }
        for rank in range(NODES * tensor_parallel)
    }
    options = {**OPTIONS, "steps": STEPS, "learning-rate": 0.01, "tensor-parallel": tensor_parallel}
    processes = NODES * tensor_parallel
    return Job(
        folder=folder, script=FOLDER / "train.py", options=options, processes=processes, environments=environments
    )


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """The losses of an undisturbed run: torchrun on each of two nodes, tensor-parallel within a node."""
    if not TORCH_PYTHON.exists():
        pytest.fail(f"there is no {TORCH_PYTHON.relative_to(ROOT)}; run: make torch-env")
    folder = tmp_path_factory.mktemp("undisturbed")
    job = fsdp(folder, tensor_parallel=2)
    launcher = [TORCH_PYTHON, "-m", "torch.distributed.run", f"--nnodes={NODES}", "--nproc_per_node=2"]
    launcher += ["--master_addr=127.0.0.1", f"--master_port={free_port()}"]
    nodes = [
        subprocess.Popen(
            [*launcher, f"--node_rank={node}", *job.arguments()],
            env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "TRN_CHECKPOINT_DIR": str(folder / str(node))},
            stdout=subprocess.PIPE,
            text=True,
        )
        for node in range(NODES)
    ]
    outputs = [node.communicate(timeout=TIMEOUT_SECONDS)[0] for node in nodes]
    assert [node.returncode for node in nodes] == [0] * NODES, outputs
    # Each node saves only the parts of its own processes.
    saved = [
        sorted(file.name for file in (folder / str(node) / f"step-{STEPS:08d}").iterdir()) for node in range(NODES)
    ]
    assert saved == [[".metadata", "__0_0.distcp", "__1_0.distcp"], ["__2_0.distcp", "__3_0.distcp"]]
    return {int(step): loss for step, loss, *_ in PROGRESS.findall(outputs[0])}


def test_loss_decreases_as_without_tensor_parallelism(losses: dict[int, str], tmp_path: Path) -> None:
    run = fsdp(tmp_path, tensor_parallel=1).run()
    assert run.codes == [0, 0], run.outputs
    split, whole = ([float(loss) for loss in each.values()] for each in (losses, run.losses))
    assert len(split) == STEPS
    assert split[-1] < split[0] - 1
    # Sums in a different order differ in their last bits, and training amplifies the difference.
    assert whole[:10] == pytest.approx(split[:10], abs=1e-3)


def test_killed_training_resumes_on_both_nodes_with_identical_losses(losses: dict[int, str], tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, NODES)
    job = fsdp(tmp_path / "killed", tensor_parallel=2, TRN_CHECKPOINT_DIR=f"{tmp_path}/node-{{}}")
    killed = job.interrupt(signal.SIGKILL, after_step=13)
    assert 0 not in killed.codes, killed.outputs
    nodes.end(exit_code=-9)
    nodes.nodes[0].await_parts(0, lambda: True)
    newest = max(nodes.complete)
    assert newest >= "step-00000010"

    store: Any = nodes.store
    for node, launch in enumerate(nodes.launches):
        download(launch._replace(resume_from=newest), store, tmp_path / f"resumed-{node}")
    resumed = {"TRN_CHECKPOINT_DIR": f"{tmp_path}/resumed-{{}}", "TRN_RESUME_FROM": f"{tmp_path}/resumed-{{}}/{newest}"}
    finished = fsdp(tmp_path / "resumed", tensor_parallel=2, **resumed).run()
    assert finished.codes == [0] * 4, finished.outputs
    assert min(finished.losses) == int(newest.removeprefix("step-")) + 1
    assert {**killed.losses, **finished.losses} == losses


def test_all_processes_stop_after_a_notice_and_save(losses: dict[int, str], tmp_path: Path) -> None:
    job = fsdp(tmp_path / "job", tensor_parallel=2)
    run = job.interrupt(signal.SIGUSR1, after_step=3)
    saved = max(run.losses)
    assert run.codes == [0] * 4, run.outputs
    assert f"stopped by SIGUSR1, saved after step {saved}" in run.outputs[0]
    assert job.checkpoints()[-1] == f"step-{saved:08d}"
    assert run.losses == {step: loss for step, loss in losses.items() if step <= saved}


def test_job_splits_layers_over_a_chip_of_its_nodes() -> None:
    request = job_request(read_job_file(FOLDER / "job.toml"))
    plan = Plan.of(instance_type="trn2.48xlarge", region="us-east-2")
    size = int(request.arguments[request.arguments.index("--tensor-parallel") + 1])
    assert size * plan.type.neuron_devices == plan.type.logical_neuron_cores(plan.lnc)
    assert Path(request.inputs["text"]).is_file()


def test_layers_split_over_several_nodes_are_refused(tmp_path: Path) -> None:
    job = fsdp(tmp_path / "job", tensor_parallel=1)
    run = job.run(**{"tensor-parallel": 2})
    assert run.codes == [1, 1]
    assert "--tensor-parallel 2 does not divide processes of a node, 1" in run.outputs[0]
