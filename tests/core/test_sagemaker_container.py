"""The container entry program, with a stand-in for neuron-ls: with torchrun and gloo on CPUs, then without torch."""

import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.core.container import TIMEOUT_SECONDS, TORCH_PYTHON, Container, container, free_port
from tests.core.jobs import JOB, small_plan
from tests.layout.repository import ROOT
from trainium_core.engines.sagemaker.jobs.job import TrainingJob
from trainium_core.jobs.source_package import pack_source

EXAMPLE = ROOT / "examples" / "lm"
TINY = ("--width", "32", "--layers", "1", "--heads", "2", "--context", "32")
PLAN = small_plan()
TWO_NODES = ("127.0.0.1", "127.0.0.2")


@pytest.fixture(scope="module")
def torch_python() -> Path:
    if not TORCH_PYTHON.exists():
        pytest.fail(f"there is no {TORCH_PYTHON.relative_to(ROOT)}; run: make torch-env")
    return TORCH_PYTHON


def with_variables(job: TrainingJob, **variables: str) -> TrainingJob:
    return replace(job, environment={"TRN_RENDEZVOUS_PORT": free_port(), **variables})


def of_script(folder: Path, text: str, job: TrainingJob | None = None, **place: Any) -> Container:
    script = folder / "source" / "train.py"
    script.parent.mkdir()
    script.write_text(text)
    return container(folder, PLAN, job or with_variables(JOB), pack_source(script), **place)


@dataclass(frozen=True, kw_only=True)
class Run:
    node: Container
    code: int
    printed: str


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory, torch_python: Path) -> Run:
    job = replace(with_variables(JOB), arguments=(*TINY, "--steps", "20"))
    source = pack_source(Path("train.py"), EXAMPLE)
    hyperparameters = {"report-every": "10"}
    node = container(tmp_path_factory.mktemp("node"), PLAN, job, source, hyperparameters=hyperparameters)
    code, printed = node.run(torch_python)
    return Run(node=node, code=code, printed=printed)


def test_example_trains_and_leaves_model_and_checkpoint(first_run: Run) -> None:
    ml = first_run.node.ml
    assert first_run.code == 0, first_run.printed
    assert "processes: 2" in first_run.printed
    assert "TRN step=20 " in first_run.printed
    assert (ml / "model" / "model.pt").stat().st_size > 0
    assert (ml / "checkpoints" / "step-00000020" / "state.pt").stat().st_size > 0
    assert not (ml / "output" / "failure").exists()


def test_second_job_continues_from_the_checkpoints(first_run: Run, torch_python: Path) -> None:
    request = dict(first_run.node.request)
    arguments = [*TINY, "--steps", "30"]
    request["AlgorithmSpecification"] = {**request["AlgorithmSpecification"], "ContainerArguments": arguments}
    request["Environment"] = {**request["Environment"], "TRN_RENDEZVOUS_PORT": free_port()}
    code, printed = replace(first_run.node, request=request).run(torch_python)
    assert code == 0, printed
    assert "after step 20" in printed
    assert "TRN step=30 " in printed
    assert "TRN step=1 " not in printed


def test_two_nodes_connect(tmp_path: Path, torch_python: Path) -> None:
    reduced = tmp_path / "reduced"
    # Rank 0 exits last: the others would lose its last messages, and torchrun waits five minutes for a failed node.
    report = (
        "import os, time, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "total = torch.ones(1); dist.all_reduce(total)\n"
        "print('rank', dist.get_rank(), 'of', int(total), 'on', os.environ['SM_CURRENT_HOST'], flush=True)\n"
        f"if dist.get_rank(): open({str(reduced)!r}, 'w')\n"
        f"while not os.path.exists({str(reduced)!r}): time.sleep(0.05)\n"
        "dist.destroy_process_group()\n"
    )
    job = with_variables(JOB, TRN_EXPECTED_PROCESSES="1", GLOO_SOCKET_IFNAME="lo")
    nodes: list[Container] = []
    for name in TWO_NODES:
        (tmp_path / name).mkdir()
        nodes.append(of_script(tmp_path / name, report, job, hosts=TWO_NODES[::-1], current=name, cores=1))
    with ThreadPoolExecutor(len(nodes)) as pool:
        runs = [pool.submit(node.run, torch_python) for node in nodes]
    ended = [run.result() for run in runs]
    assert [code for code, _ in ended] == [0, 0], ended
    assert [f"rank {rank} of 2 on {name}" in ended[rank][1] for rank, name in enumerate(TWO_NODES)] == [True, True]


def test_failure_reason_in_sagemaker_is_the_error_of_the_script(tmp_path: Path, torch_python: Path) -> None:
    broken = of_script(tmp_path, "raise RuntimeError('no data in the channel')")
    code, printed = broken.run(torch_python)
    assert code == 1
    assert "Traceback" in printed
    assert broken.failure == "RuntimeError: no data in the channel (exit code 1)"


def test_stop_of_the_job_reaches_the_script(tmp_path: Path, torch_python: Path) -> None:
    waits = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(os.write(1, b'stopped\\n')))\n"
        "os.write(1, b'begun\\n')\n"
        "time.sleep(100)\n"
    )
    child = of_script(tmp_path, waits).start(torch_python)
    assert child.stdout is not None
    # torchrun forgets a started process if it is signalled before it has started the others.
    begun = (line for line in child.stdout if "begun" in line)
    for _ in range(2):
        next(begun)
    child.send_signal(signal.SIGTERM)
    printed, _ = child.communicate(timeout=TIMEOUT_SECONDS)
    assert child.returncode != 0
    assert printed.count("stopped") == 2


# The tests below do not use torch.


@pytest.mark.parametrize("cores", [1, 4])
def test_unexpected_number_of_cores_is_refused(tmp_path: Path, cores: int) -> None:
    refused = of_script(tmp_path, "", cores=cores)
    assert refused.run()[0] == 1
    assert refused.failure == f"neuron-ls shows {cores} logical NeuronCores, the plan expects 2"


@pytest.mark.parametrize("answer", ["", '{"a": 1}'])
def test_unknown_output_of_neuron_ls_is_refused(tmp_path: Path, answer: str) -> None:
    refused = of_script(tmp_path, "")
    (refused.bin / "neuron-ls").write_text(f"#!/bin/sh\necho '{answer}'")
    assert refused.run()[0] == 1
    assert refused.failure.startswith("neuron-ls printed an unknown format")


def test_logical_cores_follow_the_lnc_of_the_job(tmp_path: Path) -> None:
    job = with_variables(JOB, NEURON_LOGICAL_NC_CONFIG="1", TRN_EXPECTED_PROCESSES="8")
    node = of_script(tmp_path, "", job)
    answer = '[{"nc_count": 4, "logical_neuroncore_config": 2}]'
    (node.bin / "neuron-ls").write_text(f"#!/bin/sh\necho '{answer}'")
    assert "--nproc_per_node=8" in node.run()[1]


def test_node_ranks_do_not_depend_on_the_listed_order(tmp_path: Path) -> None:
    hosts = ("localhost", "127.0.0.1", "127.0.0.11")
    node = of_script(tmp_path, "", hosts=hosts, current="127.0.0.11")
    _, printed = node.run()
    assert "--nnodes=3" in printed
    assert "--node_rank=2" in printed
    assert "--master_addr=127.0.0.1 " in printed


def test_arguments_precede_hyperparameters_and_both_reach_the_script(tmp_path: Path) -> None:
    job = replace(JOB, arguments=("--data", "a b"))
    _, printed = of_script(tmp_path, "", job, hyperparameters={"lr": "0.1", "batch": "8"}).run()
    assert "train.py --data a b --batch 8 --lr 0.1" in printed


RUNS_THE_SCRIPT = """
import runpy, sys
sys.argv = sys.argv[[argument.endswith("train.py") for argument in sys.argv].index(True):]
runpy.run_path(sys.argv[0])
"""
WRITES = """
import os, sys
for folder in ("out", "../results"):
    os.makedirs(folder)
for path in ("out/model.pt", "../results/ckpt.pt", "../.history", "../outputs/log", sys.argv[1]):
    open(path, "w").write(os.environ["WHERE"])
print(os.listdir("../inputs"), os.path.samefile("../checkpoints", os.environ["TRN_CHECKPOINT_DIR"]), flush=True)
"""


def test_folders_have_the_paths_of_a_cluster_and_written_files_are_kept(tmp_path: Path) -> None:
    launcher = tmp_path / "torch/distributed/run.py"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(RUNS_THE_SCRIPT)
    job = with_variables(JOB, PYTHONPATH=str(tmp_path), WHERE="${TRN_INPUT_DIR}/$HOME")
    job = replace(job, arguments=("$TRN_OUTPUT_DIR/given",), checkpoint_url="s3://checkpoints/job")
    node = of_script(tmp_path, WRITES, job)
    (node.ml / "checkpoints").mkdir()
    code, printed = node.run()
    assert code == 0, printed
    kept = {str(file.relative_to(node.ml / "model")) for file in node.ml.glob("model/**/*") if file.is_file()}
    assert kept == {"given", "home-directory/results/ckpt.pt", "log", "working-directory/out/model.pt"}
    assert (node.ml / "model/given").read_text() == f"{node.ml}/input/data/$HOME"
    assert "['code'] True" in printed


@pytest.mark.parametrize("name", ["hyperparameters", "inputdataconfig"])
def test_invalid_configuration_file_is_the_failure_reason(tmp_path: Path, name: str) -> None:
    node = of_script(tmp_path, "")
    (node.ml / "input" / "config" / f"{name}.json").write_text("{")
    assert node.run()[0] == 1
    assert f"{name}.json is not JSON" in node.failure


def test_failed_installation_of_requirements_is_the_failure_reason(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text("")
    (source / "requirements.txt").write_text("./nothing-here\n")
    node = container(tmp_path, PLAN, JOB, pack_source(source / "train.py", source))
    assert node.run()[0] == 1
    assert node.failure.startswith("requirements.txt could not be installed: ")
