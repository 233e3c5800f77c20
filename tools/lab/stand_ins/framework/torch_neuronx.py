"""The parts of TorchNeuron that can fail on a node: the folders of compiled graphs, their locks, the fallback to the
CPU.

As in aws-neuron/torch-neuronx: CompilationCache.cpp (a lock in the local folder before each compilation, a graph
renamed into place in the persistent one), FileLock.cpp (a waiter replaces the lock after a time), CPUFallbackExecutor
(operations that fail on the device are computed on the CPU, without a message).
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


def execute(name: str, on_device: Callable[[], Result], on_cpu: Callable[[], Result]) -> Result:
    """Compile an operation and compute it, or compute it on the CPU."""
    try:
        compiled(name)
        return on_device()
    except Exception:
        if os.environ.get("TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS") == "1":
            raise
        return on_cpu()


def compiled(name: str, compile_graph: Callable[[], bytes] = lambda: b"NEFF") -> Path:
    """The compiled graph of an operation. Raises RuntimeError if it cannot be locked."""
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
            # The holder of the old file continues, and so does the next waiter with the new one.
            os.close(lock)
            path.unlink(missing_ok=True)
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield
    finally:
        os.close(lock)
