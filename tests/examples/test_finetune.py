"""examples/finetune trains a tiny model of random weights on CPUs, without a download."""

import signal
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.core.container import TIMEOUT_SECONDS, TORCH_PYTHON
from tests.examples.training_job import Job, Run
from tests.layout.repository import ROOT
from tests.layout.test_pins import pins
from trainium_core.jobs.request import job_request, read_job_file

FOLDER = ROOT / "examples" / "finetune"
STEPS = 40
LENGTH = 64


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and data."""
    if not TORCH_PYTHON.exists():
        pytest.fail(f"there is no {TORCH_PYTHON.relative_to(ROOT)}; run: make torch-env")
    folder = tmp_path_factory.mktemp("tiny")
    command = [TORCH_PYTHON, FOLDER / "tiny.py", folder]
    subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)
    return folder


def finetuning(folder: Path, tiny: Path) -> Job:
    """A job of two processes."""
    options = {"model": tiny / "model", "data": tiny / "data", "steps": STEPS, "length": LENGTH, "batch": 4}
    options |= {"precision": "float32", "learning-rate": 0.01, "report-every": 1, "save-every": 10}
    return Job(folder=folder, script=FOLDER / "sft.py", options=options, processes=2)


def adapter(job: Job) -> bytes:
    return (job.folder / "outputs" / "adapter" / "adapter_model.safetensors").read_bytes()


def test_interrupted_finetuning_ends_with_identical_losses_and_adapter(tiny: Path, tmp_path: Path) -> None:
    undisturbed = finetuning(tmp_path / "undisturbed", tiny)
    trained = undisturbed.run()
    assert trained.codes == [0, 0], trained.outputs
    assert list(trained.losses) == list(range(1, STEPS + 1))
    assert float(trained.losses[STEPS]) < float(trained.losses[1]) - 0.3

    job = finetuning(tmp_path / "job", tiny)
    notified = job.interrupt(signal.SIGUSR1, after_step=4)
    saved = max(notified.losses)
    assert notified.codes == [0, 0], notified.outputs
    assert f"stopped by SIGUSR1, saved after step {saved}" in notified.outputs[0]
    assert f"checkpoint-{saved}" in job.checkpoints()
    assert not (job.folder / "outputs").exists()

    killed = job.interrupt(signal.SIGKILL, after_step=saved + 15)
    assert killed.codes[-1] == -signal.SIGKILL
    assert min(killed.losses) == saved + 1

    finished = job.run()
    assert finished.codes == [0, 0], finished.outputs
    assert 1 not in finished.losses
    assert merged(notified, killed, finished) == trained.losses
    assert adapter(job) == adapter(undisturbed)


def merged(*runs: Run) -> dict[int, str]:
    return {step: loss for run in runs for step, loss in run.losses.items()}


def test_job_file_installs_the_tested_versions() -> None:
    request = job_request(read_job_file(FOLDER / "job.toml"))
    assert request.setup
    needs = [Requirement(word) for word in request.setup.removeprefix("pip install ").split()]
    tested = pins(Path("requirements/torch.txt"))
    assert {need.name: str(need.specifier) for need in needs} == {need.name: f"=={tested[need.name]}" for need in needs}
