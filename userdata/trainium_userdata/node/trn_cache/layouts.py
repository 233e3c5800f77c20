"""The layouts of the stacks' caches in a folder, and which of their entries are finished.

Sources for libneuronxla and torch-neuronx: optimum-neuron's cache/AGENTS.md and cleanup.py, and
torch/reference/env-vars of AWS Neuron's documentation. JAX and vLLM do not mark finished entries: an entry counts as
finished once it has not changed for a while, or the job has succeeded. The next job removes unfinished entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from trainium_wire.cache_place import NATIVE_FOLDER, native_folders

LOCK = ".lock"
LONGEST_LINE = 300


class Entry(NamedTuple):
    """A finished entry.

    Attributes:
        name: Path of the entry, relative to the layout's `root`.
        path: The file or folder of the entry.
        result: The file that the framework reads on a cache hit.
    """

    name: str
    path: Path
    result: Path

    @property
    def files(self) -> list[Path]:
        """The files of the entry without locks and symbolic links, sorted by path."""
        if self.path.is_file():
            return [self.path]
        found = (file for file in self.path.rglob("*") if file.is_file() and not file.is_symlink())
        return sorted(file for file in found if file.suffix != LOCK)

    @property
    def signature(self) -> tuple[tuple[str, int, int], ...]:
        """Changes when a file of the entry is written. Raises OSError if one is deleted in the meantime."""
        stats = [(str(file), file.stat()) for file in self.files]
        return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)

    @property
    def compile_seconds(self) -> float | None:
        """Seconds between the oldest and the newest modification time of the files; None for fewer than two files.

        Raises OSError if a file is deleted in the meantime.
        """
        times = [file.stat().st_mtime for file in self.files]
        return max(times) - min(times) if len(times) > 1 else None


class Unfinished(NamedTuple):
    """Why a path is not a finished entry.

    Attributes:
        failed: Whether the compilation failed.
    """

    why: str
    failed: bool = False


LOCKED, INCOMPLETE = Unfinished("locked"), Unfinished("incomplete")


class Layout:
    """The folder of one stack's cache. Names that begin with a dot are not entries."""

    variable = ""
    below = ""
    """Folder of the cache below the path in the variable."""
    settle_seconds = 0.0
    """How long an entry must be unchanged to count as finished, for layouts without a mark."""

    def environment(self, folder: Path) -> Mapping[str, str]:
        """Variables that make the stack use the folder."""
        return {self.variable: str(folder)}

    def root(self, folder: Path) -> Path:
        """The folder of the entries."""
        return folder / self.below if self.below else folder

    def candidates(self, root: Path) -> Iterator[Path]:
        """Entries, finished or not."""
        raise NotImplementedError

    def result(self, path: Path) -> Path | None:
        """The file that the framework reads on a cache hit; None while the entry is not finished."""
        raise NotImplementedError

    def finished(self, root: Path) -> dict[str, Entry]:
        """Finished entries by name. In a layout with settle_seconds, some may still change."""
        entries = (self.entry(root, path) for path in self.candidates(root))
        return {entry.name: entry for entry in entries if entry}

    def entry(self, root: Path, path: Path) -> Entry | None:
        """The entry at a path; None if it is not finished."""
        try:
            result = self.result(path)
            return Entry(str(path.relative_to(root)), path, result) if result and result.stat().st_size else None
        except OSError:
            # The entry was deleted in the meantime.
            return None

    def unfinished(self, root: Path) -> dict[Path, Unfinished]:
        """The paths outside of finished entries, and all locks."""
        finished = {path for path in self.candidates(root) if self.entry(root, path)}
        found = {path: _why(path) for path in self.candidates(root) if path not in finished}
        for file in (each for each in root.rglob("*") if not each.is_dir()):
            above = {file, *file.parents}
            if not above.isdisjoint(found) or file.relative_to(root).parts[0].startswith("."):
                continue
            if file.suffix == LOCK:
                found[file] = LOCKED
            elif above.isdisjoint(finished):
                found[file] = INCOMPLETE
        return found


class Xla(Layout):
    """libneuronxla: neuronxcc-<version>/MODULE_<graph>+<flags>/, finished with model.done and a model.neff."""

    variable = "NEURON_COMPILE_CACHE_URL"

    def candidates(self, root: Path) -> Iterator[Path]:
        return (path for path in root.glob("neuronxcc-*/MODULE_*") if path.is_dir())

    def result(self, path: Path) -> Path | None:
        return path / "model.neff" if (path / "model.done").is_file() else None


class Native(Layout):
    """TorchNeuron: ab/cd/<32 hexadecimal digits>.neff, renamed into place.

    It takes a lock before each compilation, in a second folder: by default /tmp/local_cache/locks, where the locks of
    one user prevent others from compiling (CompilationCache.cpp, FileLock.cpp).
    """

    variable = NATIVE_FOLDER
    _NAME = re.compile(r"[0-9a-f]{32}\.neff")

    def environment(self, folder: Path) -> Mapping[str, str]:
        return native_folders(str(folder))

    def candidates(self, root: Path) -> Iterator[Path]:
        return (
            path for path in root.glob("[0-9a-f][0-9a-f]/[0-9a-f][0-9a-f]/*.neff") if self._NAME.fullmatch(path.name)
        )

    def result(self, path: Path) -> Path | None:
        return path


class Jax(Layout):
    """JAX: a file for each entry, whose name ends with -cache."""

    variable = "JAX_COMPILATION_CACHE_DIR"
    settle_seconds = 10

    def candidates(self, root: Path) -> Iterator[Path]:
        return (path for path in root.glob("*-cache") if path.is_file())

    def result(self, path: Path) -> Path | None:
        return path


class Vllm(Layout):
    """vLLM on Neuron: a folder for each model and its settings, whose largest .neff is the result."""

    variable = "VLLM_CACHE_ROOT"
    below = "neuron/compile_cache"
    settle_seconds = 600

    def candidates(self, root: Path) -> Iterator[Path]:
        return (path for path in root.glob("*") if path.is_dir() and not path.name.startswith("."))

    def result(self, path: Path) -> Path | None:
        return max(path.rglob("*.neff"), key=lambda file: file.stat().st_size, default=None)


LAYOUTS: Mapping[str, Layout] = {"native": Native(), "xla": Xla(), "jax": Jax(), "vllm": Vllm()}


def _why(path: Path) -> Unfinished:
    if path.is_dir():
        for log in sorted(path.glob("*.log")):
            lines = log.read_text(errors="replace").split("\n")
            last = next((line.strip() for line in reversed(lines) if line.strip()), "")
            return Unfinished(f"failed: {last[:LONGEST_LINE]}" if last else "failed", failed=True)
        if any(path.glob(f"*{LOCK}")):
            return LOCKED
    return INCOMPLETE
