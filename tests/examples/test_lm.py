"""examples/lm trains on CPUs: in one process, and in two that exchange data over gloo."""

import itertools
import re
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.core.container import TIMEOUT_SECONDS, TORCH_PYTHON, free_port
from tests.examples.training_job import PROGRESS, Job, Run
from tests.layout.repository import ROOT
from trn_job.progress import RankProgress

SCRIPT = ROOT / "examples" / "lm" / "train.py"
STEPS = 160
SEQUENCES = 8
"""Sequences in a step, over all processes."""
OPTIONS = {"width": 32, "layers": 1, "heads": 2, "context": 32, "learning-rate": 0.01, "checkpoint-every": 10}


def lm(folder: Path, processes: int = 1, *, environments: Mapping[int, Mapping[str, str]] | None = None) -> Job:
    options = {"steps": STEPS, "batch": SEQUENCES // processes, **OPTIONS}
    return Job(folder=folder, script=SCRIPT, options=options, processes=processes, environments=environments or {})


def weights(job: Job) -> bytes:
    return (job.folder / "outputs" / "model.pt").read_bytes()


@dataclass(frozen=True, kw_only=True)
class Trained:
    job: Job
    run: Run


@pytest.fixture(scope="module", autouse=True)
def torch_is_there() -> None:
    if not TORCH_PYTHON.exists():
        pytest.fail(f"there is no {TORCH_PYTHON.relative_to(ROOT)}; run: make torch-env")


@pytest.fixture(scope="module")
def trained_by_one(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """One process, never interrupted."""
    job = lm(tmp_path_factory.mktemp("one"))
    run = job.run()
    assert run.codes == [0], run.outputs
    return Trained(job=job, run=run)


@pytest.fixture(scope="module")
def trained_by_two(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Two processes of torchrun, never interrupted."""
    job = lm(tmp_path_factory.mktemp("two"), 2)
    launcher = [TORCH_PYTHON, "-m", "torch.distributed.run", "--nproc_per_node=2", f"--master_port={free_port()}"]
    done = subprocess.run(
        [*launcher, *job.arguments()], cwd=job.folder, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    assert done.returncode == 0, done.stderr
    return Trained(job=job, run=Run(codes=[0], outputs=[done.stdout]))


@pytest.fixture(params=["trained_by_one", "trained_by_two"])
def trained(request: pytest.FixtureRequest) -> Trained:
    return request.getfixturevalue(request.param)


def test_loss_decreases(trained_by_one: Trained) -> None:
    losses = [float(loss) for loss in trained_by_one.run.losses.values()]
    uniform = 5.545  # ln 256: all bytes are equally likely.
    assert losses[0] == pytest.approx(uniform, abs=0.5)
    assert sum(losses[-10:]) / 10 < losses[0] / 2


def test_every_step_is_reported_once_by_rank_0(trained: Trained) -> None:
    lines = PROGRESS.findall(trained.run.outputs[0])
    assert [int(step) for step, *_ in lines] == list(range(1, STEPS + 1))
    assert {int(tokens) for _, _, tokens, _ in lines} == {SEQUENCES * OPTIONS["context"]}


def test_node_reads_the_progress_lines(trained_by_one: Trained) -> None:
    progress = RankProgress(clock=itertools.count(0.5, 0.5).__next__)  # A line takes half a second.
    for line in trained_by_one.run.outputs[0].splitlines():
        progress.feed(0, line)
    record = progress.as_record()
    assert (record["step"], record["loss"]) == (STEPS, float(trained_by_one.run.losses[STEPS]))
    assert (record["steps_per_second"], record["tokens_per_second"]) == (2, 2 * SEQUENCES * OPTIONS["context"])


def test_two_processes_compute_the_losses_of_one(trained_by_one: Trained, trained_by_two: Trained) -> None:
    one, two = ([float(loss) for loss in trained.run.losses.values()] for trained in (trained_by_one, trained_by_two))
    # Sums in a different order differ in their last bits, and training amplifies the difference.
    assert two[:20] == pytest.approx(one[:20], abs=1e-4)
    assert two == pytest.approx(one, abs=0.05)


def test_interrupted_training_ends_with_identical_weights(trained: Trained, tmp_path: Path) -> None:
    job = lm(tmp_path / "job", trained.job.processes)
    notified = job.interrupt(signal.SIGUSR1, after_step=5)
    saved = max(notified.losses)
    assert notified.codes == [0] * job.processes, notified.outputs
    assert f"stopped by SIGUSR1, saved after step {saved}" in notified.outputs[0]
    assert job.checkpoints()[-1] == f"step-{saved:08d}"

    killed = job.interrupt(signal.SIGKILL, after_step=saved + 15)
    assert killed.codes[-1] == -signal.SIGKILL
    assert 0 not in killed.codes, killed.outputs
    assert min(killed.losses) == saved + 1

    # As if it was killed while it wrote a later checkpoint.
    incomplete = tmp_path / "job" / "checkpoints" / f".step-{STEPS:08d}.tmp"
    incomplete.mkdir()
    (incomplete / "state.pt").write_bytes(b"half")

    finished = job.run()
    assert finished.codes == [0] * job.processes, finished.outputs
    assert 1 not in finished.losses
    assert {**notified.losses, **killed.losses, **finished.losses} == trained.run.losses
    assert weights(job) == weights(trained.job)
    assert job.checkpoints()[-1] == f"step-{STEPS:08d}"


def test_nothing_is_saved_while_graphs_are_collected(tmp_path: Path) -> None:
    job = lm(tmp_path / "collecting")
    assert job.run(environment={"NEURON_EXTRACT_GRAPHS_ONLY": "1"}, steps=2).codes == [0]
    assert [folder for folder in ("checkpoints", "outputs") if (job.folder / folder).exists()] == []


def test_one_process_resumes_a_checkpoint_of_two_with_equal_batches(trained_by_two: Trained, tmp_path: Path) -> None:
    checkpoint = trained_by_two.job.folder / "checkpoints" / "step-00000100"
    run = lm(tmp_path / "job").run(environment={"TRN_RESUME_FROM": str(checkpoint)})
    assert run.codes == [0], run.outputs
    assert min(run.losses) == 101
    assert float(run.losses[101]) == pytest.approx(float(trained_by_two.run.losses[101]), abs=1e-4)


def test_checkpoint_of_other_batches_is_refused(trained_by_two: Trained, tmp_path: Path) -> None:
    checkpoint = trained_by_two.job.folder / "checkpoints" / "step-00000100"
    run = lm(tmp_path / "job").run(environment={"TRN_RESUME_FROM": str(checkpoint)}, batch=SEQUENCES // 2)
    assert run.codes == [1]
    sentence = "step-00000100 was written with batch 8, this run has batch 4 (--batch times the number of processes)"
    assert run.outputs == [f"train.py: {sentence}\n"]


def test_processes_at_different_steps_do_not_resume(trained_by_two: Trained, tmp_path: Path) -> None:
    # As on two nodes without a shared folder, of which only the first has a checkpoint.
    checkpoint = trained_by_two.job.folder / "checkpoints" / "step-00000100"
    run = lm(tmp_path / "job", 2, environments={0: {"TRN_RESUME_FROM": str(checkpoint)}}).run()
    assert run.codes == [1, 1]
    assert "train.py: one process resumes after step 100, another after step 0" in run.outputs[1]


LIST_THREADS = """
import atexit
from pathlib import Path

def list_threads():
    print("at exit:", *(place.read_text().strip() for place in Path("/proc/self/task").glob("*/comm")), flush=True)

atexit.register(list_threads)
"""


@pytest.mark.parametrize("resumed_step", [0, 100], ids=["trained", "refused"])
def test_no_gloo_thread_outlives_the_training(trained_by_two: Trained, tmp_path: Path, resumed_step: int) -> None:
    """A thread that releases a tensor while Python exits aborts the process: pytorch/pytorch issue 190489."""
    (tmp_path / "sitecustomize.py").write_text(LIST_THREADS)
    checkpoint = trained_by_two.job.folder / "checkpoints" / f"step-{resumed_step:08d}"
    environments = {0: {"TRN_RESUME_FROM": str(checkpoint)}} if resumed_step else {}
    job = lm(tmp_path / "job", 2, environments=environments)
    run = job.run(steps=2, environment={"PYTHONPATH": str(tmp_path)})
    assert run.codes == ([1, 1] if resumed_step else [0, 0]), run.outputs
    assert [re.findall("at exit: .*", output) for output in run.outputs] == [["at exit: python"]] * 2
