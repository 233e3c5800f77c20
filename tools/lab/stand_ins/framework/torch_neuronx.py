"""The parts of TorchNeuron that can fail on a node: the folders of compiled graphs, their locks, the fallback to the
CPU and its counters.

As in aws-neuron/torch-neuronx: CompilationCache.cpp (a lock in the local folder before each compilation, a graph
renamed into place in the persistent one), FileLock.cpp (a waiter replaces the lock after a time), CPUFallbackExecutor
(operations that fail on the device are computed on the CPU, without a message).

PyTorch on CPUs loads this module as a backend. In an observed job, the module then counts the operators that read a
tensor's values, because every device must give these values to the CPU.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")

READS_VALUES = ("aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::_unique2")
"""Operators whose result, or its shape, depends on values."""

_fallbacks: list[str] = []


def execute(name: str, on_device: Callable[[], Result], on_cpu: Callable[[], Result]) -> Result:
    """Compile an operation and compute it, or compute it on the CPU."""
    try:
        compiled(name)
        return on_device()
    except Exception:
        if os.environ.get("TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS") == "1":
            raise
        _fallbacks.append(name)
        return on_cpu()


def get_fallback_ops() -> list[str]:
    """The operators that ran on the CPU, once for each time."""
    return list(_fallbacks)


def autoload() -> None:
    """Start to count operators. PyTorch calls this at its import.

    Counting slows every operator, so only an observed job counts.
    """
    if "TRN_OBSERVE_DIR" not in os.environ:
        return

    def dispatch(_mode: Any, operator: Any, _types: Any, args: Any = (), options: Any = None) -> Any:
        name = operator._schema.name
        if name in READS_VALUES:
            _fallbacks.append(name)
        return operator(*args, **(options or {}))

    mode: Any = import_module("torch.utils._python_dispatch").TorchDispatchMode
    type("Counting", (mode,), {"__torch_dispatch__": dispatch})().__enter__()


def compiled(name: str, compile_graph: Callable[[], bytes] = lambda: b"NEFF") -> Path:
    """The file of an operation's compiled graph. Raises RuntimeError if the lock file cannot be opened."""
    folder = Path(os.environ.get("TORCH_NEURONX_NEFF_CACHE_DIR", "/tmp/neff_cache"))
    local = Path(os.environ.get("TORCH_NEURONX_NEFF_LOCAL_CACHE_DIR", "/tmp/local_cache"))
    key = hashlib.md5(name.encode()).hexdigest()
    file = folder / key[:2] / key[2:4] / f"{key}.neff"
    with _locked(local / "locks" / f"{key}.lock"):
        if not file.exists():
            content = compile_graph()
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                new = file.with_suffix(f".{os.getpid()}")
                new.write_bytes(content)
                new.rename(file)
            except OSError:
                # The graph is compiled and used; the next process compiles it again.
                pass
    return file


@contextmanager
def _locked(path: Path) -> Generator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise RuntimeError(f"Failed to open lock file: {path} ({error.strerror})") from error
    ends = time.monotonic() + float(os.environ.get("TORCH_NEURONX_NEFF_CACHE_LOCK_TIMEOUT", "1200"))
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(0.01)
        if time.monotonic() > ends:
            # The holder of the old lock file continues, while the next waiter locks the new file.
            os.close(lock)
            path.unlink(missing_ok=True)
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield
    finally:
        os.close(lock)
