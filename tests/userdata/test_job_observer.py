"""The report of a job with `observe`, with stand-ins that count as PyTorch/XLA and TorchNeuron document."""

from pathlib import Path

import pytest

from tests.userdata.job_nodes import JobNodes
from trn_job.progress import Compiling

XLA_METRICS = """
COUNTERS = {"aten::nonzero": 4, "aten::_local_scalar_dense": 7, "xla::add": 9, "MarkStep": 2}
def counter_names(): return list(COUNTERS)
def counter_value(name): return COUNTERS[name]
def metric_data(name): return {"CompileTime": (3, 2.5e9, [])}.get(name)
"""

TORCH_NEURONX = """
class Graph:
    graph_name, graph_node_count, torch_neuronx_compile_us = "graph", 12, 1_500_000
def get_fallback_ops(): return ["aten::sort", "aten::sort", "aten::linalg_qr"]
def get_dynamo_metrics(): return [Graph(), Graph()]
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder on the job's PYTHONPATH, with stand-ins for both frameworks."""
    folder = tmp_path / "library"
    (folder / "torch_xla/debug").mkdir(parents=True)
    (folder / "torch_xla/__init__.py").touch()
    (folder / "torch_xla/debug/__init__.py").touch()
    (folder / "torch_xla/debug/metrics.py").write_text(XLA_METRICS)
    (folder / "torch_neuronx.py").write_text(TORCH_NEURONX)
    return folder


def test_observed_job_reports_counters_of_pytorch_xla(nodes: JobNodes, library: Path) -> None:
    nodes.start("import torch_xla", observe=True, environment={"PYTHONPATH": str(library), "RANK": "0"})
    assert nodes.wait() == [0]
    observed = nodes.record()["observed"]
    assert (observed["stack"], observed["processes"], observed["compiled"]) == ("xla", 1, 3)
    assert observed["compile_seconds"] == 2.5
    assert observed["fallbacks"] == {"aten::_local_scalar_dense": 7, "aten::nonzero": 4}


def test_observed_job_reports_counters_of_torchneuron(nodes: JobNodes, library: Path) -> None:
    nodes.start("import torch_neuronx\nraise SystemExit(3)", observe=True, environment={"PYTHONPATH": str(library)})
    assert nodes.wait() == [1]
    observed = nodes.record()["observed"]
    assert (observed["stack"], observed["compiled"], observed["compile_seconds"]) == ("native", 2, 3)
    assert observed["fallbacks"] == {"aten::sort": 2, "aten::linalg_qr": 1}


def test_unobserved_job_has_no_trace_of_the_observer(nodes: JobNodes, library: Path) -> None:
    script = "import os, torch_xla\nprint([name for name in os.environ if 'OBSERVE' in name or name == 'TORCH_LOGS'])"
    nodes.start(script, environment={"PYTHONPATH": str(library)})
    assert nodes.wait() == [0]
    assert "[]\n" in nodes.log()
    assert "observed" not in nodes.record()


def test_observer_tolerates_frameworks_without_counters(nodes: JobNodes, library: Path) -> None:
    (library / "torch_xla/debug/metrics.py").write_text("raise RuntimeError('no metrics')")
    (library / "torch_neuronx.py").write_text("")
    nodes.start(
        "import torch_xla, torch_neuronx\nprint('done')", observe=True, environment={"PYTHONPATH": str(library)}
    )
    assert nodes.wait() == [0]
    assert "done\n" in nodes.log()
    assert "Traceback" not in nodes.log()
    assert nodes.record()["observed"]["processes"] == 0


def test_existing_sitecustomize_runs_once_and_stays_the_module(nodes: JobNodes, library: Path) -> None:
    (library / "sitecustomize.py").write_text("print('own sitecustomize', __name__)\nOWN = True\n")
    script = "import sitecustomize, torch_xla\nprint(sitecustomize.OWN, sitecustomize.__file__)"
    nodes.start(script, observe=True, environment={"PYTHONPATH": str(library)})
    assert nodes.wait() == [0]
    assert nodes.log().count("own sitecustomize sitecustomize\n") == 1
    assert f"True {library}/sitecustomize.py\n" in nodes.log()
    assert nodes.record()["observed"]["processes"] == 1


def test_reasons_and_errors_are_counted_from_output() -> None:
    compiling = Compiling()
    for line in (
        "V0920 13:54:44.53 3904 torch/_dynamo/guards.py:4760] [0/1] [__recompiles] Recompiling function f in x.py:4",
        "V0920 13:54:44.53 3904 torch/_dynamo/guards.py:4760] [0/1] [__recompiles]     triggered by the following "
        "guard failure(s):",
        "V0920 13:54:44.53 3904 torch/_dynamo/guards.py:4760] [0/1] [__recompiles]     - 0/0: tensor 'O' dtype "
        "mismatch. expected BFloat16, actual Float",
        "Compilation Analysis: Compilation Cause",
        "Compilation Analysis:   mark_step in parallel loader at step end",
        "Compilation Analysis: Graph Info: ",
        "RuntimeError: RunNeuronCCImpl: [ERROR] [NCC_EVRF029]",
    ):
        compiling.feed(line, rank=1)
        compiling.feed("Compilation Analysis: Graph Info: ", rank=0)
    assert compiling.reasons == {
        "tensor 'O' dtype mismatch. expected BFloat16, actual Float": 1,
        "mark_step in parallel loader at step end": 1,
    }
    assert compiling.errors == {"NCC_EVRF029": 1}
