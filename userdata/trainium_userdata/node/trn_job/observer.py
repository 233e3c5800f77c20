"""The `sitecustomize` of the Python processes of a job's command, with `observe`, or with `profile` and ranks.

A process that has loaded PyTorch/XLA or TorchNeuron writes their counters into TRN_OBSERVE_DIR when Python exits. A
process that a signal ends, and one without these frameworks or their functions, writes nothing. The Neuron runtime of a
rank in TRN_PROFILE_RANKS writes a profile: it reads its variables after this file has run. An existing `sitecustomize`
runs as well.

Sources: PyTorch/XLA's torch_xla/debug/metrics.py and its guide on troubleshooting (counters aten::* are operators on
the CPU; times are in nanoseconds); the tests of native torch-neuronx (get_fallback_ops, get_dynamo_metrics); Neuron
Explorer's environment variables, SDK 2.33.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.machinery
import importlib.util
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

NANOSECONDS, MICROSECONDS = 1e9, 1e6


def xla(metrics: Any) -> dict[str, Any]:
    """The counters of torch_xla."""
    names = [name for name in metrics.counter_names() if name.startswith("aten::")]
    compiled = metrics.metric_data("CompileTime") or (0, 0)
    return {
        "fallbacks": {name: int(metrics.counter_value(name) or 0) for name in names},
        "compiled": int(compiled[0]),
        "compile_seconds": compiled[1] / NANOSECONDS,
    }


def native(torch_neuronx: Any) -> dict[str, Any]:
    """The counters of TorchNeuron."""
    fallbacks: dict[str, int] = {}
    for name in torch_neuronx.get_fallback_ops():
        fallbacks[str(name)] = fallbacks.get(str(name), 0) + 1
    metrics: Any = getattr(torch_neuronx, "get_dynamo_metrics", tuple)
    graphs: list[Any] = list(metrics())
    microseconds = [getattr(graph, "torch_neuronx_compile_us", 0) or 0 for graph in graphs]
    return {"fallbacks": fallbacks, "compiled": len(graphs), "compile_seconds": sum(microseconds) / MICROSECONDS}


def counted() -> dict[str, Any]:
    """The counters of the loaded framework; empty without one."""
    if hasattr(sys.modules.get("torch_neuronx"), "get_fallback_ops"):
        return {"stack": "native", **native(sys.modules["torch_neuronx"])}
    if "torch_xla" in sys.modules:
        return {"stack": "xla", **xla(importlib.import_module("torch_xla.debug.metrics"))}
    return {}


def write() -> None:
    """Write the counters. An error here does not affect the process."""
    try:
        found = counted()
        if found:
            name = os.environ.get("RANK") or f"process-{os.getpid()}"
            file = Path(os.environ["TRN_OBSERVE_DIR"], f"{Path(name).name}.json")
            file.write_text(json.dumps(found))
    except Exception:
        return


def profile_variables(folder: str, *, device: bool) -> dict[str, str]:
    """Variables that make the Neuron runtime write a profile. "session" works on both stacks, and for vLLM."""
    return {
        "NEURON_RT_INSPECT_ENABLE": "1",
        "NEURON_RT_INSPECT_SYSTEM_PROFILE": "1",
        "NEURON_RT_INSPECT_DEVICE_PROFILE": "session" if device else "0",
        "NEURON_RT_INSPECT_OUTPUT_DIR": folder,
    }


def profile() -> None:
    """Set the variables if this process has a rank to profile."""
    rank = os.environ.get("RANK")
    if rank and rank in os.environ.get("TRN_PROFILE_RANKS", "").split(","):
        device = "TRN_PROFILE_DEVICE" in os.environ
        os.environ.update(profile_variables(os.environ["TRN_PROFILE_DIR"], device=device))


def run_next() -> None:
    """Run the `sitecustomize` that this file hides."""
    here = Path(__file__).resolve().parent
    others = [folder for folder in sys.path if Path(folder).resolve() != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    profile()
    if "TRN_OBSERVE_DIR" in os.environ:
        # Exit functions of threading run before those of atexit, with which the frameworks end their runtimes.
        getattr(threading, "_register_atexit", atexit.register)(write)
    run_next()
